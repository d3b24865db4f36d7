"""CAN for benchmarks, on machines without it: packets of `can_frame` on sockets, through the gateway's code.

The kernel marks what comes back to its sender; here the highest bit of an unused byte does.
`python -m benchmarks.can_pairs DIRECTORY ARGUMENT...` runs `buscoupler ARGUMENT...`; its channels are sockets
in the directory.
"""

import contextlib
import select
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bridges.items import OWN
from bridges.media.can import link, port
from bridges.media.can.inbox import SO_TIMESTAMPNS
from bridges.media.can.many import Many
from bridges.media.can.socketcan import FD_BYTES

MARKED, MARK = 5, 0x80
_SNDBUFFORCE = 32  # asm-generic/socket.h; not in `socket`
_BUFFER_BYTES = 1 << 24


def roomy(sock: socket.socket) -> socket.socket:
    """Enlarge the buffer of an end, and return it, non-blocking."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, _SNDBUFFORCE, _BUFFER_BYTES)
    sock.setblocking(False)
    return sock


class _Inbox(Many):
    """An inbox over a socket whose kernel does not tell which frames are ours."""

    def _marks(self, count: int) -> list[int]:
        return [OWN if one & MARK else 0 for one in self._data[MARKED::FD_BYTES][:count]]


class Bus:
    """python-can's SocketcanBus, as far as the link uses it."""

    def __init__(self, sock: socket.socket) -> None:
        self.channel, self.socket = "pair", roomy(sock)

    def shutdown(self) -> None:
        self.socket.close()


def install(bus: Any) -> None:
    """Have the gateway of this process call `bus(channel=..., ...)` in place of opening SocketCAN."""
    import can

    vars(can)["Bus"] = bus
    vars(port)["inbox_of"], vars(link)["prepare"] = _Inbox, stamped


def stamped(sock: socket.socket) -> None:
    """Have the kernel tell when each packet came."""
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)


def door(path: Path) -> socket.socket:
    """Return a socket that listens for those who open the channel at `path`."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.bind(str(path))
    made.listen(2)
    made.settimeout(10)
    return made


@contextmanager
def wire(path: Path) -> Iterator[None]:
    """Join the two who open the channel at `path`, by a thread, without a pace; each hears itself too."""
    with door(path) as entrance:
        threading.Thread(target=_carry, args=(entrance,), daemon=True).start()
        yield


def _carry(entrance: socket.socket) -> None:
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
        ends = [opened.enter_context(roomy(entrance.accept()[0])) for _ in range(2)]
        while True:
            for end in select.select(ends, (), ())[0]:
                raw = bytearray(end.recv(FD_BYTES))
                if not raw:
                    return
                ends[end is ends[0]].send(raw)
                raw[MARKED] |= MARK
                end.send(raw)


def main(directory: str, *arguments: str) -> int:
    """Return the exit status of `buscoupler`."""
    from appliance.commandline.cli import main as program

    def bus(channel: str = "", **_: Any) -> Bus:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.connect(str(Path(directory) / channel))
        return Bus(sock)

    install(bus)
    return program(list(arguments))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
