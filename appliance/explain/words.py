"""The questions of a trace and their answers, as they cross the local socket: one line of JSON each. Pure."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args

from appliance.explain.hop import Exit, Hop
from appliance.local.lines import Record, number, record, records, text, texts, title

ANSWER_BYTES: Final = 16 << 20
SECONDS_MAX: Final = 60
MARK_BYTES: Final = 16, 64  # at least, at most: what occurs in no other message
Verb = Literal["links", "watch", "send", "collect"]
"""`links` names those of a process. `watch` begins to look for a mark, `send` sends the frame with it, and
`collect` returns what was seen, which ends the watch."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to one process. `watch` needs `watch_ms`; `send` needs `link` (a title) and `frame`."""

    verb: Verb
    mark: str = ""
    watch_ms: int = 0
    link: str = ""
    frame: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one process. `error` says why it refused. `more`: it saw more hops than it kept."""

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
        """The title of the process: topology, gateway, and the parts that it runs if not all."""
        return title(self.topology, self.gateway, self.only)


def pack_question(question: Question) -> bytes:
    """Pack a question as one line of JSON."""
    return json.dumps(asdict(question) | {"frame": question.frame.hex()}).encode() + b"\n"


def unpack_question(line: bytes) -> Question:
    """Return the question in a line. Raises `ValueError` for anything else."""
    found = record(line)
    verb = text(found, "verb")
    if verb not in get_args(Verb):
        raise ValueError(f"{verb!r} is no question: ask one of {', '.join(get_args(Verb))}")
    words = {name: text(found, name) or "" for name in ("mark", "link")}
    frame = bytes.fromhex(text(found, "frame") or "")
    return Question(verb, watch_ms=number(found, "watch_ms") or 0, frame=frame, **words)  # type: ignore[arg-type]


def pack_answer(answer: Answer) -> bytes:
    """Pack an answer as one line of JSON."""
    hops = [_hop_record(hop) for hop in answer.hops]
    return json.dumps(asdict(answer) | {"hops": hops}).encode() + b"\n"


def _hop_record(hop: Hop) -> Record:
    found = hop._asdict()
    return {**found, "ways": [one._asdict() for one in found.pop("exits")]}


def unpack_answer(line: bytes) -> Answer:
    """Return the answer in a line. Raises `ValueError` for anything else."""
    found = record(line)
    words = {name: text(found, name) or "" for name in ("topology", "gateway", "file", "error")}
    lists = {name: texts(found, name) for name in ("only", "links")}
    hops = tuple(map(_hop, records(found, "hops")))
    return Answer(**words, **lists, hops=hops, more=bool(found.get("more")))  # type: ignore[arg-type]


def _hop(found: Record) -> Hop:
    words: Any = {name: text(found, name) or "" for name in ("part", "gateway", "by", "bus")}
    lists: Any = {name: texts(found, name) for name in ("stopped", "remarks")}
    at_ns, exits = number(found, "at_ns") or 0, tuple(map(_exit, records(found, "ways")))
    return Hop(**words, at_ns=at_ns, exits=exits, **lists)


def _exit(found: Record) -> Exit:
    words: Any = {name: text(found, name) or "" for name in ("to", "bus")}
    lists: Any = {name: texts(found, name) for name in ("stopped", "remarks")}
    at_ns, pipes = number(found, "at_ns"), number(found, "pipes") or 0
    return Exit(at_ns=at_ns, pipes=pipes, inside=bool(found.get("inside")), **words, **lists)
