"""The losses of CAN frames in a format of files: what it cannot hold is counted. Pure, with numpy."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import numpy as np

from bus.wire.identifier import ERROR
from capture.formats.format import Format
from capture.formats.source import LeftOut
from capture.frames import CLASSIC_DATA, Flags, Frames

OF_ERRORS: Final[Mapping[str, tuple[str, bool, Callable[[Frames], Flags]]]] = {
    "fd": ("of CAN FD", False, lambda frames: frames.is_fd),
    "long": ("of more than 8 bytes", False, lambda frames: np.greater(frames.sizes, CLASSIC_DATA)),
    "remote": ("that are remote ones, too", False, lambda frames: frames.is_remote),
    "extended": ("with the mark of extended identifiers", True, lambda frames: frames.is_extended),
    "sent": ("that were sent", True, lambda frames: frames.is_sent),
    "details": ("with details", True, lambda frames: _has_details(frames)),
}
"""The sorts of error frames that a format may not tell: in words, whether they are written all the same, and
which frames are of the sort."""


def _has_details(frames: Frames) -> Flags:
    """Return which frames say more than that there was an error."""
    says = (frames.ids != ERROR) | (frames.sizes != CLASSIC_DATA) | (frames.marks != 0)
    found: Flags = says | frames.is_fd | frames.is_sent | frames.data.any(axis=1)
    return found


def _date(ts_ns: int) -> str:
    return f"{datetime.fromtimestamp(ts_ns // 10**9, UTC):%Y-%m-%d}"


class Losses:
    """The count of what a format cannot hold of the frames that are written."""

    def __init__(self, form: Format, told: LeftOut) -> None:
        self._form, self._told = form, told
        self._naming, self._named = form.names(), dict[str, str]()
        self._first_ns: int | None = None

    def fitted(self, frames: Frames, step_ns: int, directed: bool = False) -> Frames:
        """Return the frames that the format holds, and count what they lose in it. `directed`: this file of
        it tells directions, which others do not."""
        form, told = self._form, self._told
        left = np.zeros(len(frames), np.bool_)
        for word, held, which in (
            ("CAN FD frames", form.fd, frames.is_fd),
            ("remote frames", form.remote, frames.is_remote),
            ("error frames", form.errors, frames.is_error),
            (f"frames after {_date(form.last_ns)}", False, frames.ts_ns > form.last_ns),
        ):
            if not held:
                told.leave(f"{word}, which {form.key} does not have", int((which & ~left).sum()))
                left |= which
        kept = frames.chosen(~left) if left.any() else frames
        if form.errors_lack:
            kept = self._of_errors(kept)
        if form.relative:
            kept = self._from_first(kept)
        if not form.codes:
            codes = int(((kept.marks != 0) & ~kept.is_fd).sum())
            told.note(f"length codes above 8, which {form.key} does not have: 8 is written", codes)
        if not (form.directions or directed):
            told.note(f"frames that were sent, which {form.key} does not tell", int(kept.is_sent.sum()))
        if step_ns > 1:
            cut = int((kept.ts_ns % step_ns != 0).sum())
            told.note(f"times cut to {step_ns:,} ns, the step of {form.key}", cut)
        if len(kept):
            self._tell_names(kept)
        return kept

    def _of_errors(self, frames: Frames) -> Frames:
        """Return the frames without error frames of a sort that the format does not have; count these, and
        what others lose."""
        left = np.zeros(len(frames), np.bool_)
        for key in self._form.errors_lack:
            words, stays, which = OF_ERRORS[key]
            found = frames.is_error & which(frames) & ~left
            lacks = f"which {self._form.key} does not {'tell' if stays else 'have'}"
            count = self._told.note if stays else self._told.leave
            count(f"error frames {words}, {lacks}", int(found.sum()))
            left |= found & ~np.bool_(stays)
        return frames.chosen(~left) if left.any() else frames

    def _tell_names(self, frames: Frames) -> None:
        """Count the names that become others, and those that become one."""
        key = self._form.key
        for name in frames.names:
            if name in self._named:
                continue
            found = self._naming(name)
            if found in self._named.values():
                self._told.note(f"names that are the same as others in {key}", 1, f"{name} is {found}")
            elif found != name:
                self._told.note(f"names that are others in {key}", 1, f"{name} is {found}")
            self._named[name] = found

    def _from_first(self, frames: Frames) -> Frames:
        """Give frames that are before the first one its time."""
        if not len(frames):
            return frames
        if self._first_ns is None:
            self._first_ns = int(frames.ts_ns[0]) // 10**6 * 10**6
        early = frames.ts_ns < self._first_ns
        if not early.any():
            return frames
        self._told.note("times before the first frame: its time is written", int(early.sum()))
        return replace(frames, ts_ns=np.maximum(frames.ts_ns, self._first_ns))
