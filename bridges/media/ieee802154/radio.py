"""The kernel's socket of IEEE 802.15.4 (net/ieee802154/socket.c), which Python's `socket` can open only."""

import contextlib
import ctypes
import os
import socket
import struct
from dataclasses import dataclass
from typing import Final

from bridges.media.ieee802154.card import FAMILY, Card, find, make_socket
from bridges.media.ieee802154.medium import Ieee802154
from bridges.media.multicast.interfaces import Watch
from bus.transports.inlet import Held, held_by, widen

# The kernel's interface (linux/socket.h, net/af_ieee802154.h, linux/sockios.h), which `socket` lacks.
_ADDRESS: Final = struct.Struct("=H2xiH8s2x")  # family, kind, PAN, address: a long one as people write it
_SHORT: Final = struct.Struct("=H6x")
_SHORT_KIND, _LONG_KIND = 2, 3
_ALL: Final = 0xFFFF
_LEVEL, _WANTACK = 0, 0
SEND_BYTES: Final = 4096
"""The driver gets some ten datagrams only: what waits there is out of reach of a policy."""
_RECEIVE_BYTES: Final = 256 * 1024


class RadioSocket:
    """A datagram socket of one radio, which sends to all others of its PAN."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket, self.send, self.fileno, self.close = sock, sock.send, sock.fileno, sock.close
        self._receive = ctypes.CDLL(None, use_errno=True).recvfrom
        self._receive.restype = ctypes.c_ssize_t
        self._from, self._size = ctypes.create_string_buffer(_ADDRESS.size), ctypes.c_uint32()

    def recvfrom_into(self, view: memoryview) -> tuple[int, str]:
        """Read a datagram. Return its size and the address of its sender. Raises OSError.

        That of `socket` cuts the long address short.
        """
        self._size.value = _ADDRESS.size
        place = (ctypes.c_char * len(view)).from_buffer(view)
        size = self._receive(
            self._socket.fileno(), place, ctypes.c_size_t(len(view)), socket.MSG_DONTWAIT, self._from,
            ctypes.byref(self._size),
        )  # fmt: skip
        if size < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return size, _sender(self._from.raw)

    def held(self) -> Held | None:
        """Return what the kernel tells of the buffer."""
        return held_by(self._socket)


def _sender(raw: bytes) -> str:
    _, kind, pan, address = _ADDRESS.unpack(raw)
    if kind == _LONG_KIND:
        return bytes(address).hex()
    return f"{pan:04x}:{_SHORT.unpack(address)[0]:04x}" if kind == _SHORT_KIND else ""


@dataclass(slots=True)
class Radio:
    """An open radio: its socket, its interface, and the watch over that."""

    interface: Card
    watch: Watch
    sender: RadioSocket

    @property
    def receiver(self) -> RadioSocket:
        return self.sender

    @property
    def own(self) -> str:
        """Our own address, as that of a sender."""
        return self.interface.address

    def held(self) -> Held | None:
        return self.sender.held()

    def stamp(self) -> tuple[int, int]:
        """Return a random origin and first number."""
        return int.from_bytes(os.urandom(4)), int.from_bytes(os.urandom(4))

    def unheard_here(self) -> contextlib.AbstractContextManager[None]:
        """Do nothing: programs of this machine do not hear what its radio sends."""
        return contextlib.nullcontext()

    def close(self) -> None:
        self.sender.close()
        self.watch.close()


def open_radio(options: Ieee802154) -> Radio:
    """Open the socket of a radio and the watch over it. Raises OSError that says what is wrong."""
    with contextlib.ExitStack() as undo:
        watch = Watch()  # first, so that no later change is missed
        undo.callback(watch.close)
        sock = make_socket()
        undo.callback(sock.close)
        card = find(options.interface, options.pan, sock)
        _call("bind", sock, _ADDRESS.pack(FAMILY, _LONG_KIND, options.pan, bytes.fromhex(card.address)))
        everyone = _SHORT.pack(_ALL)
        _call("connect", sock, _ADDRESS.pack(FAMILY, _SHORT_KIND, options.pan, everyone))
        sock.setsockopt(_LEVEL, _WANTACK, 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        widen(sock, _RECEIVE_BYTES)
        undo.pop_all()
        return Radio(card, watch, RadioSocket(sock))


def _call(name: str, sock: socket.socket, address: bytes) -> None:
    """Call `bind` or `connect` of libc, as Python's do not know the family. Raises OSError."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(sock.fileno(), address, len(address)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
