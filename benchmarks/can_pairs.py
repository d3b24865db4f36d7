"""CAN for benchmarks, on machines without it: packets of `can_frame` on sockets, through the gateway's code.

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

from bridges.packed import FD_BYTES
from tests.rigs.can_packets import MARK, MARKED, install, roomy


class Bus:
    """python-can's SocketcanBus, as far as the link uses it."""

    def __init__(self, sock: socket.socket) -> None:
        self.channel, self.socket = "pair", roomy(sock)

    def shutdown(self) -> None:
        self.socket.close()


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
