"""CAN frames of a capture or a file as messages of the protocol `raw`, and the endpoint that takes them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from appliance.probe.endpoint import Endpoint, parse_endpoint
from appliance.probe.media import form_of
from bridges.items import FD, STATE, SWITCH, CanFrame
from bridges.protocols.protocol import Protocol
from bridges.protocols.raw.protocol import Raw
from bridges.protocols.raw.translator import RawTranslator
from bridges.protocols.selection import ALL
from bridges.protocols.translator import Wire
from bus.errors import LinkError
from bus.ledger import Stats
from capture.files import CaptureError

if TYPE_CHECKING:
    from capture.formats.exports import Found
    from capture.frames import Frames

_ROOT: Final = "can"


class Choice(NamedTuple):
    """The choice of frames that the options `--hub`, `--bus` and `--dir` make."""

    hub: str | None = None
    bus: str | None = None
    direction: str | None = None

    def opened(self, source: Path) -> "AbstractContextManager[Found]":
        """Open the frames of the place. Raises `CaptureError`."""
        from capture.formats.exports import FramePlace, frames_in

        return frames_in(source, place=FramePlace(self.hub, self.bus))

    def frames(self, frames: "Frames") -> "Frames":
        """Return those of the direction."""
        if self.direction is None:
            return frames
        return frames.chosen(frames.is_sent == (self.direction == "tx"))


def raw_endpoint(word: str) -> Endpoint:
    """Return the endpoint of a word that takes CAN frames: of a CAN bus all of them, as they are.

    Raises `LinkError`.
    """
    name, _, rest = word.partition(":")
    form = None if rest.startswith("//") else form_of(name)
    if form is not None and "frames" in form.record.items and "protocol=" not in rest:
        word = f"{word}{'&' if '?' in word else '?'}protocol=raw"
    endpoint = parse_endpoint(word)
    if endpoint.protocol is None:
        return endpoint
    if not isinstance(endpoint.protocol, Raw):
        raise LinkError(f"{word}: {endpoint.protocol.key} does not take CAN frames as they are: protocol=raw")
    return endpoint._replace(protocol=replace(endpoint.protocol, send=(ALL,)))


def translator_of(endpoint: Endpoint) -> RawTranslator:
    """Return the translator that makes messages of frames, as the endpoint reads them."""
    said = endpoint.protocol
    root, ids = (said.root, said.ids) if isinstance(said, Raw) else ((_ROOT,), {})
    return RawTranslator(Raw(root=root, ids=ids), Wire(endpoint.word, "frames", Stats()))


def raw_of(word: str) -> Protocol | None:
    """Return the protocol that a word names; None if there is none, or it is only complete for CAN frames."""
    return parse_endpoint(word).protocol if "protocol=" in word else None


def has_frames(source: Path) -> bool:
    """Return whether there are CAN frames in a capture. Raises `CaptureError`."""
    from capture.formats.exports import frames_in

    with frames_in(source) as found:
        return any(map(len, found.frames))


def identifiers_of(endpoint: Endpoint, pattern: Sequence[int] | None) -> frozenset[int] | None:
    """Return the identifier that a pattern has at an endpoint of raw CAN frames; None if nobody knows."""
    said = endpoint.protocol
    if not isinstance(said, Raw) or pattern is None:
        return None
    return frozenset({said.token_names.parted(tuple(pattern))[0]})


class Survey(NamedTuple):
    """The frames of a source: how many on each channel, their identifiers, and those that are never sent.

    `told` says what cannot be read of it, a line for each reason.
    """

    channels: Counter[str]
    ids: frozenset[int]
    errors: int
    told: Sequence[str]


def survey(source: Path, choose: Choice) -> Survey:
    """Look through a source once. Raises `CaptureError`, also unless the frames are of one channel."""
    import numpy as np

    channels, ids, errors = Counter[str](), set[int](), 0
    with choose.opened(source) as found:
        for frames in map(choose.frames, found.frames):
            counts = np.bincount(frames.channel, minlength=len(frames.names)).tolist()
            channels.update(dict(zip(frames.names, counts, strict=True)))
            ids.update(np.unique(frames.ids[~frames.is_error]).tolist())
            errors += int(frames.is_error.sum())
        told = list(found.told.lines())
    known = [name for name, count in channels.items() if count]
    if not known:
        chosen = "no such frames in it: leave out one of --hub, --bus and --dir"
        raise CaptureError(f"{source}: {chosen if any(choose) else 'no CAN frames in it'}")
    if len(known) > 1:
        lines = [f"  --bus '{name}': {channels[name]} frames" for name in sorted(known)]
        raise CaptureError("\n".join([f"{source}: seen on several channels; say which:", *lines]))
    return Survey(channels, frozenset(ids), errors, told)


def messages(source: Path, choose: Choice, translator: RawTranslator) -> Iterator[tuple[int, bytes]]:
    """Yield the time in ns and the message of each frame but error frames, which nobody sends."""
    with choose.opened(source) as found:
        for frames in map(choose.frames, found.frames):
            sendable = frames.chosen(~frames.is_error)
            for ts_ns, item in zip(sendable.ts_ns.tolist(), items_of(sendable), strict=True):
                for message in translator.receive([item], 0.0):
                    yield ts_ns, message


def items_of(frames: "Frames") -> Iterator[CanFrame]:
    """Yield frames as media take them."""
    width, data = frames.data.shape[1], frames.data.tobytes()
    columns = frames.ids, frames.sizes, frames.marks, frames.is_fd
    for at, (identifier, size, marks, is_fd) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        content = data[at * width : at * width + size]
        word = (FD | (SWITCH if marks & 1 else 0) | (STATE if marks & 2 else 0)) if is_fd else marks << 4
        yield identifier, content, word
