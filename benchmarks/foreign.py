"""The raw devices of other libraries, one in a small process.

`foreign.py nng|nng-one|nng-small|nanomsg PORT [CERTIFICATE]`. In place of a port NNG takes a URL, with a
certificate where that is one of TLS. `nng-one` keeps NNG's threads on one core, which is often faster;
`nng-small` has the queues of NNG's default.

Both run the library's own device function as a reflector on one raw bus socket. The library's C code
does all the forwarding. Python only starts it, and adds 10 to 20 MiB of resident size.
"""

import ctypes
import ctypes.util
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

AF_SP_RAW = 2
NN_BUS = 7 * 16 + 0
NN_SOL_SOCKET, NN_SNDBUF, NN_RCVBUF = 0, 2, 3
NNG_BUFFER_MESSAGES = 8192
NNG_DEFAULT_MESSAGES = 16
NN_BUFFER_BYTES = 4 << 20


def nng_device(where: str, certificate: str = "", messages: int = NNG_BUFFER_MESSAGES) -> None:
    """Run `nng_device` on a raw bus socket. Its queues hold 8192 messages, the maximum, instead of 16."""
    import pynng

    with pynng.Bus0(
        opener=pynng.lib.nng_bus0_open_raw,
        send_buffer_size=messages,
        recv_buffer_size=messages,
    ) as bus:
        if certificate:
            own = Path(certificate).read_text()
            mode = pynng.TLSConfig.MODE_SERVER
            bus.tls_config = pynng.TLSConfig(mode, own_key_string=own, own_cert_string=own)
        bus.listen(where if "://" in where else f"tcp://127.0.0.1:{where}")
        pynng.lib.nng_device(bus.socket, bus.socket)


def nng_on_one_core(where: str) -> None:
    """Run `nng_device` with all its threads on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    nng_device(where)


def nn_library() -> str | None:
    """Return the name of nanomsg's shared library, or None if it is not installed."""
    return ctypes.util.find_library("nanomsg")


def nn_device(port: str) -> None:
    """Run `nn_device` in loopback mode on a raw bus socket, with 4 MiB buffers instead of 128 KiB."""
    nn = ctypes.CDLL(nn_library() or "libnanomsg.so.5", use_errno=True)
    bus = nn.nn_socket(AF_SP_RAW, NN_BUS)
    size = ctypes.c_int(NN_BUFFER_BYTES)
    for option in (NN_SNDBUF, NN_RCVBUF):
        nn.nn_setsockopt(bus, NN_SOL_SOCKET, option, ctypes.byref(size), ctypes.sizeof(size))
    if nn.nn_bind(bus, f"tcp://127.0.0.1:{port}".encode()) < 0:
        raise OSError(ctypes.get_errno(), f"nn_bind to port {port} failed")
    nn.nn_device(bus, -1)
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    devices: dict[str, Callable[..., None]] = {
        "nng": nng_device,
        "nng-one": nng_on_one_core,
        "nng-small": partial(nng_device, messages=NNG_DEFAULT_MESSAGES),
        "nanomsg": nn_device,
    }
    devices[sys.argv[1]](*sys.argv[2:])
