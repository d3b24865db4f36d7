"""The receiving end of a UDP socket: what its buffer holds and lost, and whom the kernel keeps out of it.

Who says more than is handled fills the buffer, and then what others say finds no room. A filter in the kernel
(`SO_ATTACH_FILTER`, socket(7)) drops the datagrams of such a sender before they get there.
"""

import socket
from array import array
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from struct import Struct, iter_unpack
from typing import Final, NamedTuple

FULL: Final = "input full"
"""The reason of datagrams of a sender of which too much waits already."""
OVERFLOW: Final = "kernel buffer full"
"""The reason of datagrams that found no room in the buffer of the socket."""
MUTED_MAX: Final = 32
"""The most senders that are kept out."""
_OF_A_HOST: Final = 8  # senders that are kept out one by one; then the whole host is

# The kernel's interface (linux/filter.h, linux/sock_diag.h, asm-generic/socket.h), which `socket` lacks.
_SO_ATTACH_FILTER, _SO_DETACH_FILTER, _SO_RCVBUFFORCE, _SO_MEMINFO = 26, 27, 33, 55
_MEMINFO: Final = Struct("=9I")
_STEP: Final = Struct("=HBBI")
_PROGRAM: Final = Struct("@HP")
_WORD, _HALF, _BYTE, _AND, _EQUAL, _RETURN = 0x20, 0x28, 0x30, 0x54, 0x15, 0x06
_IP: Final = 0xFFF00000  # where the IP header begins; the UDP header, with the sender's port, begins at 0
_CHANCE: Final = 0xFFFFF038  # where a random number is
_ALL: Final = 0xFFFFFFFF
_NONE: Final = -1


class Held(NamedTuple):
    """The state of a socket: how many datagrams the kernel has dropped so far, modulo 2^32.

    `is_pressed`: the buffer is more than half full.
    """

    dropped: int
    is_pressed: bool


def held_by(sock: socket.socket) -> Held | None:
    """Return what the kernel tells of a socket; None before Linux 4.12, and once it is closed."""
    try:
        found = _MEMINFO.unpack(sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size))
    except OSError:
        return None
    return Held(found[8], 2 * found[0] > found[1])


def widen(sock: socket.socket, size_bytes: int) -> None:
    """Make the receive buffer as large as allowed: it holds what comes while the program is busy."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size_bytes)
    with suppress(OSError):  # goes above net.core.rmem_max, but needs CAP_NET_ADMIN
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, size_bytes)


class Inlet:
    """The kernel's end of a UDP socket. `reject(reason, count)` counts the datagrams that the kernel drops.

    While senders are muted or thinned, what the kernel drops counts for them. Where the kernel takes no
    filter, nobody is. `held` tells what is in the buffer.
    """

    def __init__(
        self,
        sock: socket.socket,
        reject: Callable[[str, int], object],
        held: Callable[[], Held | None] | None = None,
    ) -> None:
        self._socket, self._reject = sock, reject
        self._held = held or (lambda: held_by(sock))
        self._dropped = 0
        self._muted = dict[tuple[str, int], None]()

    @property
    def muted(self) -> list[tuple[str, int]]:
        """The senders that are kept out, or thinned: host and port; a port of 0 is all of the host."""
        return list(self._muted)

    def look(self) -> bool:
        """Count what the kernel has dropped since the last look. Return whether the buffer is half full."""
        found = self._held()
        if found is None:
            return False
        dropped, is_pressed = found
        if dropped != self._dropped:
            self._reject(FULL if self._muted else OVERFLOW, (dropped - self._dropped) & 0xFFFFFFFF)
            self._dropped = dropped
        return is_pressed

    def mute(self, sender: Hashable) -> None:
        """Keep a sender out until `thin`, and those that are thinned. It begins with host and port."""
        if not isinstance(sender, tuple) or len(sender) < 2:
            return
        host, port = sender[:2]
        is_known = (host, port) in self._muted or (host, 0) in self._muted
        if is_known or len(self._muted) >= MUTED_MAX:
            self._attach(_NONE)
            return
        of_host = [one for one in self._muted if one[0] == host]
        if port == 0 or len(of_host) >= _OF_A_HOST:
            for one in of_host:
                del self._muted[one]
            port = 0
        self._muted[host, port] = None
        self._attach(_NONE)

    def thin(self, level: int) -> None:
        """Let one of `2 ** level` datagrams of the muted in; with 0 all, and nobody is muted. Idempotent."""
        if not self._muted:
            return
        self.look()
        if level:
            return self._attach(level)
        self._muted.clear()
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)

    def _attach(self, level: int) -> None:
        steps = array("B", program(self._muted, level))
        place, size = steps.buffer_info()
        try:
            head = _PROGRAM.pack(size // _STEP.size, place)
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, head)
        except (OSError, AttributeError):
            self._muted.clear()


def program(senders: Iterable[tuple[str, int]], level: int = _NONE) -> bytes:
    """Return the filter, in the code of classic BPF, that drops what comes from these hosts and ports.

    One of `2 ** level` passes, by chance; with -1 none.
    """
    steps = b"".join(_dropping(*sender, level) for sender in senders)
    return steps + _STEP.pack(_RETURN, 0, 0, _ALL)


def _dropping(host: str, port: int, level: int) -> bytes:
    """Return the steps that drop what comes from a sender, and else go on behind them."""
    plain = host.partition("%")[0].removeprefix("::ffff:")
    is_6 = ":" in plain
    packed = socket.inet_pton(socket.AF_INET6 if is_6 else socket.AF_INET, plain)
    steps = [(_BYTE, _IP), (_AND, 0xF0), (_EQUAL, 0x60 if is_6 else 0x40)]
    for at, (word,) in enumerate(iter_unpack(">I", packed)):
        steps += [(_WORD, _IP + (8 if is_6 else 12) + 4 * at), (_EQUAL, word)]
    if port:
        steps += [(_HALF, 0), (_EQUAL, port)]
    ends = [(_RETURN, 0, 0, 0)]
    if level != _NONE:
        chance = [(_WORD, 0, 0, _CHANCE), (_AND, 0, 0, (1 << level) - 1), (_EQUAL, 1, 0, 0)]
        ends = [*chance, *ends, (_RETURN, 0, 0, _ALL)]
    left = len(steps) + len(ends)
    tests = [
        (code, 0, left - at - 1 if code == _EQUAL else 0, value) for at, (code, value) in enumerate(steps)
    ]
    return b"".join(_STEP.pack(*step) for step in tests + ends)
