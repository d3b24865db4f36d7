"""Frames on a CAN bus that nobody here understands, told as a state while nobody says anything else.

On a bus of TMQ these are frames of others. Most interfaces bring all frames. The kernel's filter of SocketCAN
keeps those of others away, so a thread looks at them once in a while, through a socket of its own that only
reads.
"""

import socket
from asyncio import AbstractEventLoop, Future, TimerHandle
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from struct import Struct
from time import monotonic
from typing import Final

from bridges.items import ERROR, EXTENDED, REMOTE, CanFrame
from bridges.media.can.codec import RESERVED, SERVICE, subject_mask
from bridges.media.can.socketcan import unpack_frame
from bridges.media.subject import SUBJECT_MAX
from bridges.packed import FD_BYTES
from bus.input import InputWatch
from bus.noise import Ear
from bus.wire.identifier import identifier_word

IDS_MAX: Final = 256
"""The most identifiers that are remembered."""
FIRST_S, EVERY_S, LOOK_S = 3.0, 60.0, 0.5
"""The times of looks: until the first one, between two, and the longest that one takes."""
_FRAMES: Final = 256  # of one look
_SHOWN: Final = 4
_INVERTED: Final = 0x20000000  # CAN_INV_FILTER of linux/can.h
_SOL_CAN_RAW, _CAN_RAW_FILTER, _CAN_RAW_FD_FRAMES = 101, 1, 5
_KIND: Final = EXTENDED | REMOTE | SERVICE | RESERVED  # of these, a message of Cyphal has `EXTENDED` alone
_FILTER: Final = Struct("=II")


Advice = Callable[[Collection[int]], str]


def raw_advice(_: Collection[int]) -> str:
    """Return what is missing where a bus has ordinary frames."""
    return "`protocol: raw`"


class Strangers:
    """The watch over frames of others, from one opening of a bus to the next.

    It tells them once, as the condition `words`, if no message has come since the bus was opened. `looks_at`
    is the interface that has to be looked at, "" where all frames come anyway. `is_wanted` is False where a
    protocol reads the frames of others already. Frames on `subjects` are no strangers. `noun` is what none of
    them is.
    """

    def __init__(
        self,
        name: str,
        looks_at: str,
        subjects: Sequence[int],
        is_wanted: bool = True,
        noun: str = "a TMQ frame",
    ) -> None:
        ear = Ear("CAN frames", few=2, sure=1 << 62, noun=noun, likeness=self._likeness)
        self._advise: Advice = raw_advice
        self._input = InputWatch(name, ear)
        self._looks_at, self.subjects = looks_at, subjects
        self._ids = set[int]()
        self._loop: AbstractEventLoop | None = None
        self._timer: TimerHandle | None = None
        self.is_waiting, self.is_wanted = False, is_wanted

    @property
    def words(self) -> str:
        return self._input.words if self.is_wanted else ""

    @property
    def is_due(self) -> bool:
        """Whether another look is planned."""
        return self._timer is not None

    def open(self, loop: AbstractEventLoop, advise: Advice = raw_advice) -> None:
        """Begin, or begin again after a loss. `advise` says, by their identifiers, what may be missing."""
        self.close()
        self._advise = advise
        if not self.is_wanted:
            return
        self._loop, self.is_waiting = loop, True
        self._input.open(loop)
        if self._looks_at:
            self._timer = loop.call_later(FIRST_S, self._look)

    def revise(self, is_wanted: bool) -> None:
        """Tell nothing from now on; or tell it from the next opening on."""
        self.is_wanted = is_wanted
        if not is_wanted:
            self.close()

    def close(self) -> None:
        """Stop looking. What was told stays told until messages come. Idempotent."""
        self.is_waiting, self._loop = False, None
        self._input.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def hear(self, identifiers: Iterable[int], messages: int = 0) -> None:
        """Note frames of others, and how many messages came. Call it while `is_waiting`."""
        count = 0
        for count, one in enumerate(identifiers, 1):  # noqa: B007
            if len(self._ids) < IDS_MAX:
                self._ids.add(one)
        if count or messages:
            self._input.hear(count, messages)
        if messages:
            self.close()

    def _likeness(self, _: bytes) -> str:
        shown = ", ".join(map(identifier_word, sorted(self._ids)[:_SHOWN]))
        more = ", ..." if len(self._ids) > _SHOWN else ""
        count = f"at least {IDS_MAX}" if len(self._ids) == IDS_MAX else str(len(self._ids))
        return f"{count} other ids ({shown}{more}): {self._advise(self._ids)}"

    def _look(self) -> None:
        self._timer = None
        if self._loop is not None and not self.words:
            future = self._loop.run_in_executor(None, look, self._looks_at, self.subjects)
            future.add_done_callback(partial(self._looked, self._loop))

    def _looked(self, loop: AbstractEventLoop, future: "Future[list[int]]") -> None:
        if self._loop is not loop or self._timer is not None or future.cancelled():
            return
        self.hear(() if future.exception() else future.result())
        self._timer = loop.call_later(EVERY_S, self._look)


def strange(frames: Iterable[CanFrame], subjects: Collection[int]) -> list[int]:
    """Return the identifiers of the frames of others that are none of TMQ's subjects."""
    found = [one[0] for one in frames if not one[0] & ERROR]
    return [one for one in found if one & _KIND != EXTENDED or one >> 8 & SUBJECT_MAX not in subjects]


def look(interface: str, subjects: Sequence[int]) -> list[int]:
    """Return the identifiers of up to 256 frames on an interface that are none of TMQ's subjects.

    Takes 0.5 s at most. Raises `OSError`.
    """
    found, until_s = list[int](), monotonic() + LOOK_S
    with _unfiltered(interface, subjects[0]) as sock:
        while len(found) < _FRAMES and (left_s := until_s - monotonic()) > 0:
            sock.settimeout(left_s)
            try:
                frame = unpack_frame(sock.recv(FD_BYTES))
            except TimeoutError:
                break
            found += strange([] if frame is None else [frame], subjects)
    return found


def _unfiltered(interface: str, subject: int) -> socket.socket:
    """Open a socket for all frames but those of one subject; nothing is ever written to it."""
    sock = socket.socket(socket.AF_CAN, socket.SOCK_RAW, socket.CAN_RAW)
    try:
        value, mask = subject_mask(subject)
        sock.setsockopt(_SOL_CAN_RAW, _CAN_RAW_FILTER, _FILTER.pack(value | _INVERTED, mask | EXTENDED))
        sock.setsockopt(_SOL_CAN_RAW, _CAN_RAW_FD_FRAMES, 1)
        sock.bind((interface,))
    except OSError:
        sock.close()
        raise
    return sock
