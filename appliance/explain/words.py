"""The questions of a trace and their answers, as they cross the local socket: one line of JSON each. Pure."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple, get_args

from appliance.local.lines import Record, number, record, records, text, texts, title

ANSWER_BYTES: Final = 16 << 20
SECONDS_MAX: Final = 60
MARK_BYTES: Final = 16, 64  # at least, at most: what occurs in no other message
Verb = Literal["links", "watch", "send", "collect"]
"""`links` names those of a process. `watch` begins to look for a mark, `send` sends the frame with it, and
`collect` returns what was seen, which ends the watch."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `mark` is text; `watch_ms` is for `watch`, `link` (a title) and `frame` for `send`."""

    verb: Verb
    mark: str = ""
    watch_ms: int = 0
    link: str = ""
    frame: bytes = b""


class Way(NamedTuple):
    """What became of the frame at one way out of a part.

    `at_ns`: when the last of `pipes` sent it, which are those that did; None if none did. `stopped` has the
    reasons if it did not leave. `inside`: the way leads to parts of the same gateway only; `bus`: it leads to
    that bus of the file, elsewhere.
    """

    to: str
    at_ns: int | None = None
    pipes: int = 0
    inside: bool = False
    bus: str = ""
    stopped: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class Hop(NamedTuple):
    """One arrival of the frame at a part, by one of its links. `stopped`: why it did not enter.

    `bus`: it came from that bus of the file, which is elsewhere.
    """

    part: str
    gateway: str
    by: str
    at_ns: int
    bus: str = ""
    stopped: tuple[str, ...] = ()
    ways: tuple[Way, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a process answers. `error` says why it refused. `more`: it saw more hops than it kept."""

    topology: str
    gateway: str
    only: tuple[str, ...]
    file: str
    error: str = ""
    links: tuple[str, ...] = ()
    hops: tuple[Hop, ...] = ()
    more: bool = False

    @property
    def title(self) -> str:
        """Name the process."""
        return title(self.topology, self.gateway, self.only)


def pack_question(question: Question) -> bytes:
    return json.dumps(asdict(question) | {"frame": question.frame.hex()}).encode() + b"\n"


def unpack_question(line: bytes) -> Question:
    """Raises ValueError for anything else."""
    found = record(line)
    verb = text(found, "verb")
    if verb not in get_args(Verb):
        raise ValueError(f"{verb} is no question")
    words = {name: text(found, name) or "" for name in ("mark", "link")}
    frame = bytes.fromhex(text(found, "frame") or "")
    return Question(verb, watch_ms=number(found, "watch_ms") or 0, frame=frame, **words)  # type: ignore[arg-type]


def pack_answer(answer: Answer) -> bytes:
    hops = [_hop_record(hop) for hop in answer.hops]
    return json.dumps(asdict(answer) | {"hops": hops}).encode() + b"\n"


def _hop_record(hop: Hop) -> Record:
    return {**hop._asdict(), "ways": [way._asdict() for way in hop.ways]}


def unpack_answer(line: bytes) -> Answer:
    """Raises ValueError for anything else."""
    found = record(line)
    words = {name: text(found, name) or "" for name in ("topology", "gateway", "file", "error")}
    lists = {name: texts(found, name) for name in ("only", "links")}
    hops = tuple(map(_hop, records(found, "hops")))
    return Answer(**words, **lists, hops=hops, more=bool(found.get("more")))  # type: ignore[arg-type]


def _hop(found: Record) -> Hop:
    words: Any = {name: text(found, name) or "" for name in ("part", "gateway", "by", "bus")}
    lists: Any = {name: texts(found, name) for name in ("stopped", "remarks")}
    at_ns, ways = number(found, "at_ns") or 0, tuple(map(_way, records(found, "ways")))
    return Hop(**words, at_ns=at_ns, ways=ways, **lists)


def _way(found: Record) -> Way:
    words: Any = {name: text(found, name) or "" for name in ("to", "bus")}
    lists: Any = {name: texts(found, name) for name in ("stopped", "remarks")}
    at_ns, pipes = number(found, "at_ns"), number(found, "pipes") or 0
    return Way(at_ns=at_ns, pipes=pipes, inside=bool(found.get("inside")), **words, **lists)
