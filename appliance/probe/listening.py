"""Listening to a device that nobody has described: which bit rate and protocol it speaks. Nothing is sent.

A serial line is opened for reading only, and its DTR and RTS are not changed by us: many drivers raise both
at any opening. A CAN interface is read as it is: it is never brought up, nor is its bit rate changed, because
a wrong one destroys the frames of a live bus.
"""

import os
import re
import select
import socket
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from bridges.items import ERROR, EXTENDED, IDENTIFIER
from bridges.media.can.interfaces import trouble
from bridges.media.can.listening import controller_of
from bridges.media.can.medium import Can
from bridges.media.can.socketcan import unpack_frame
from bridges.media.guess import Guess, of_bytes
from bridges.media.medium import Medium
from bridges.media.rtnetlink import FD, LISTEN_ONLY
from bridges.media.uart.medium import Uart
from bridges.packed import FD_BYTES
from bus.errors import BusError
from bus.machine.holders import holder_of_file, holding_words

RATES: Final = (115_200, 9_600, 38_400, 57_600, 19_200, 4_800, 230_400, 460_800, 921_600)
_SURE: Final = 0.8
_ENOUGH_BYTES: Final = 512
_PAUSE_S: Final = 0.02  # of silence, between two chunks
_IDS_SHOWN: Final = 16


class DeviceFinding(NamedTuple):
    """The finding at a device: its record, the name of the protocol ("" for TMQ), words, and the
    settings of the protocol."""

    medium: Medium
    protocol: str
    words: str
    settings: Mapping[str, Any] = {}


_NAMED: Final = "name a serial line, as /dev/ttyUSB0, or an interface of SocketCAN, as can0"
_ELSE: Final = "what answers when it is asked joins by queries or modbus (docs/my-device.md)"
_UNKNOWN: Final = "bytes"  # all comes in and nothing leaves; TMQ would write all of the bus to the device
_INTERFACE = re.compile(r"[\w.-]{1,15}")
_ENDPOINT = re.compile(r"[a-z][a-z0-9+]*:")
Say = Callable[[str], None]


def listened(device: str, seconds: float, say: Say) -> DeviceFinding:
    """Listen to a serial device or a CAN interface for at most `seconds` at each rate. Blocks.

    `say(text)` tells what is being done. Raises `BusError` if the device cannot be opened.
    """
    if os.path.exists(device) or ("/" in device and not _ENDPOINT.match(device)):
        return _serial(os.path.abspath(device), seconds, say)
    if not _INTERFACE.fullmatch(device):
        raise BusError(
            f"{device}: {_NAMED}; others are not listened to (docs/my-device.md has what to write)"
        )
    return _can(device, seconds, say)


def _serial(path: str, seconds: float, say: Say) -> DeviceFinding:
    best, best_rate = Guess("", -1.0, f"nothing came at any rate: {_ELSE}"), RATES[0]
    try:
        with _opened(path) as line:
            for rate in RATES:
                say(f"{path}: listening at {rate} baud")
                chunks = _heard(line, rate, seconds)
                if chunks and (guess := of_bytes(chunks)).share > best.share:
                    best, best_rate = guess, rate
                if best.share >= _SURE:
                    break
    except FileNotFoundError as error:
        raise BusError(f"{path}: {holding_words(error, path)}: look for its name below /dev") from error
    except OSError as error:
        raise BusError(f"{path}: {holding_words(error, path)}") from error
    except termios.error as error:
        raise BusError(f"{path} is no serial line ({error.args[-1]}): {_NAMED}") from error
    words = f"{path}: {best.words} at {best_rate} baud" if best.share > 0 else f"{path}: {best.words}"
    medium = Uart(port=path, baud=best_rate, **best.line)
    protocol = "" if best.protocol == "tmq" else best.protocol or _UNKNOWN
    return DeviceFinding(medium, protocol, words, best.settings)


@contextmanager
def _opened(path: str) -> Iterator[int]:
    """Open a line for reading only, raw, and give it back as it was."""
    line = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        before = termios.tcgetattr(line)
        if holder := holder_of_file(path):
            raise BusError(f"{path} is in use by {holder}: stop it, and listen again")
        try:
            yield line
        finally:
            with suppress(termios.error):
                termios.tcsetattr(line, termios.TCSANOW, before)
    finally:
        os.close(line)


def _heard(line: int, rate: int, seconds: float) -> list[bytes]:
    """Return what comes at a rate, cut where the line was silent."""
    speed = getattr(termios, f"B{rate}")
    flags = termios.CREAD | termios.CLOCAL | termios.CS8
    termios.tcsetattr(line, termios.TCSANOW, [0, 0, flags, 0, speed, speed, termios.tcgetattr(line)[6]])
    termios.tcflush(line, termios.TCIFLUSH)
    chunks, size, end_s, last_s = list[bytes](), 0, time.monotonic() + seconds, 0.0
    while size < _ENOUGH_BYTES and (left_s := end_s - time.monotonic()) > 0:
        if not select.select([line], [], [], left_s)[0]:
            break
        data = os.read(line, 4096)
        if not data:
            raise OSError("the device has gone")
        now_s = time.monotonic()
        if chunks and now_s - last_s < _PAUSE_S:
            chunks[-1] += data
        else:
            chunks.append(data)
        size, last_s = size + len(data), now_s
    return chunks


def _can(interface: str, seconds: float, say: Say) -> DeviceFinding:
    if why := trouble(interface):
        only = f"ip link set {interface} up type can bitrate 500000 listen-only on"
        raise BusError(f"{interface}: {why}. To listen without a word, with its bit rate: {only}")
    say(f"{interface}: listening as it is set")
    medium, ids = _as_set(interface), _ids(interface, seconds)
    if not ids:
        return DeviceFinding(medium, "raw", f"{interface}: no frame came")
    shown = ", ".join(map(_id_text, ids[:_IDS_SHOWN])) + (" ..." if len(ids) > _IDS_SHOWN else "")
    return DeviceFinding(medium, "raw", f"{interface}: frames of {len(ids)} ids: {shown}")


def _as_set(interface: str) -> Can:
    """Return the settings that a controller has: one that only listens is to do no more."""
    found = controller_of(interface)
    is_fd, only = bool(found.mode & FD), bool(found.mode & LISTEN_ONLY)
    rate, data_rate = found.bitrate or None, (found.data_bitrate or None) if is_fd else None
    return Can(channel=interface, fd=is_fd, bitrate=rate, data_bitrate=data_rate, listen_only=only)


def _ids(interface: str, seconds: float) -> Sequence[int]:
    found = dict[int, None]()
    with socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW) as bus:
        bus.setsockopt(socket.SOL_CAN_RAW, socket.CAN_RAW_FD_FRAMES, 1)
        bus.bind((interface,))
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0 and len(found) < 4096:
            bus.settimeout(left_s)
            with suppress(TimeoutError):
                frame = unpack_frame(bus.recv(FD_BYTES))
                if frame is not None and not frame[0] & ERROR:
                    found[frame[0]] = None
    return sorted(found)


def _id_text(identifier: int) -> str:
    extended = identifier & EXTENDED
    return f"0x{identifier & IDENTIFIER:08X}x" if extended else f"0x{identifier & IDENTIFIER:03X}"
