"""Finds the gateways that run on this machine, and has a marked frame go through them."""

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from appliance.explain.hop import Exit, Hop
from appliance.explain.responder import TRACE
from appliance.explain.words import ANSWER_BYTES, Answer, Question, pack_question, unpack_answer
from appliance.local.asking import answers
from appliance.local.places import is_meant, sockets
from bus.errors import BusError, words_of

ANSWER_S: Final = 5.0


class Running(NamedTuple):
    """A process that answers at the local socket `path`.

    `answer` says which gateway it runs, and its links.
    """

    path: Path
    answer: Answer


class Start(NamedTuple):
    """A link of a running gateway by which the frame can come in."""

    running: Running
    link: str


@dataclass(frozen=True, slots=True)
class Trace:
    """The hops that processes saw of one frame, in the order of time.

    `watched` are the titles of these processes, and `known` those of their links. `more`: there were more
    hops than one of them kept. `failed` has a line about each process that did not answer, or refused.
    `size` is the length of the frame in bytes.
    """

    mark: str
    start: Start
    size: int
    watched: tuple[str, ...]
    known: tuple[str, ...]
    hops: tuple[Hop, ...]
    more: bool
    failed: tuple[str, ...] = ()

    @property
    def gateway(self) -> str:
        """The gateway where the frame came in."""
        return self.start.running.answer.gateway

    @property
    def began_ns(self) -> int:
        """The time when the frame came in."""
        return self.hops[0].at_ns if self.hops else 0

    @property
    def delivered(self) -> bool:
        """Whether the frame left by a link for anybody but parts of the gateways that were asked."""
        away = (one for hop in self.hops for one in hop.exits if one.at_ns is not None and not one.inside)
        return any(self._is_away(one) for one in away) or any(map(self._has_others, self._peers()))

    def _is_away(self, one: Exit) -> bool:
        """Return whether an exit that sent the frame leads to a medium, or to a bus that was not watched."""
        here = any(link.startswith(f"bus {one.bus}: ") for link in self.known)
        return not (one.to.startswith("listen ") or (one.bus and here))

    def _peers(self) -> dict[str, int]:
        """Return the number of peers to which each bus sent the frame at its addresses."""
        found: dict[str, int] = {}
        for hop in self.hops:
            sent = sum(one.pipes for one in hop.exits if one.to.startswith("listen ") and not one.inside)
            found[hop.part] = found.get(hop.part, 0) + sent
        return found

    def _has_others(self, bus: str) -> bool:
        """Return whether a bus sent the frame to more peers than those parts that saw it come from there."""
        return self._peers()[bus] > sum(f"bus {hop.bus}" == bus for hop in self.hops)


def new_mark() -> str:
    """Return text that occurs in no other message, short enough for frames of field media."""
    return f"trace {secrets.token_hex(8)}"


def running(directory: Path | None) -> tuple[list[Running], list[str]]:
    """Return the processes in one gateway's directory, or in all that this user may look into.

    The second value has a line about each process that does not answer.
    """
    found, failed = list[Running](), list[str]()
    for path, answer in _asked(sockets(TRACE, directory), Question("links")):
        if isinstance(answer, BusError):
            failed.append(str(answer))
        elif answer is not None:
            found.append(Running(path, answer))
    return found, failed


def starts(found: Sequence[Running], file: str | None, gateway: str | None) -> Iterator[Start]:
    """Yield the links of the processes that run `file` and `gateway`; None stands for any."""
    for one in found:
        if is_meant(file, gateway, one.answer.file, one.answer.gateway):
            yield from (Start(one, link) for link in one.answer.links)


def trace(
    found: Sequence[Running],
    start: Start,
    frame: bytes,
    mark: str,
    seconds: float,
    failed: Sequence[str] = (),
) -> Trace:
    """Have all processes watch for a mark, send the frame with that mark, and return the hops that they saw.

    A process that is gone or refuses is named in `Trace.failed`, after the lines of `failed`. Raises
    `BusError` if the frame comes in there, or cannot be sent; then no process watches any more.
    """
    begun, others = list[Running](), list(failed)
    try:
        for one in _watching(found, start, Question("watch", mark, watch_ms=round(seconds * 1000)), others):
            begun.append(one)
        _must(start.running, Question("send", mark, link=start.link, frame=frame))
        time.sleep(seconds)
    except BaseException:
        _end(begun, mark)
        raise
    return _collected(begun, start, len(frame), mark, others)


def _watching(
    found: Sequence[Running], start: Start, question: Question, failed: list[str]
) -> Iterator[Running]:
    """Have processes watch, and yield each that does. `failed` gets a line about each other; see `trace`."""
    fault: BusError | None = None
    for one, answer in _told(found, question):
        if not isinstance(answer, BusError):
            yield one
        elif one == start.running:
            fault = answer
        else:
            failed.append(str(answer))
    if fault is not None:
        raise fault


def _collected(begun: Sequence[Running], start: Start, size: int, mark: str, failed: list[str]) -> Trace:
    hops, more = list[Hop](), False
    for _, answer in _told(begun, Question("collect", mark)):
        if isinstance(answer, BusError):
            failed.append(str(answer))
            continue
        hops += answer.hops
        more = more or answer.more
    watched = tuple(one.answer.title for one in begun)
    known = tuple(link for one in begun for link in one.answer.links)
    return Trace(mark, start, size, watched, known, tuple(sorted(hops, key=_time)), more, tuple(failed))


def _time(hop: Hop) -> int:
    return hop.at_ns


def _end(begun: Sequence[Running], mark: str) -> None:
    list(_asked((one.path for one in begun), Question("collect", mark)))


def _must(one: Running, question: Question) -> Answer:
    """Ask a process that has answered before. Raises `BusError` if it is gone or refuses."""
    ((_, answer),) = _told([one], question)
    if isinstance(answer, BusError):
        raise answer
    return answer


def _told(found: Sequence[Running], question: Question) -> Iterator[tuple[Running, Answer | BusError]]:
    """Ask processes that have answered before. Yield each with its answer, or that it is gone or refuses."""
    asked = _asked((one.path for one in found), question)
    for one, (_, answer) in zip(found, asked, strict=True):
        if answer is None:
            text = f"{one.answer.title}: its process has ended: run it again, or trace the other gateways"
            yield one, BusError(text)
        elif isinstance(answer, Answer) and answer.error:
            yield one, BusError(f"{one.answer.title}: {answer.error}")
        else:
            yield one, answer


def _asked(paths: Iterable[Path], question: Question) -> Iterator[tuple[Path, Answer | BusError | None]]:
    """Ask processes at the same time. Yield what each answers, None if nobody listens there, or its fault."""
    for path, line in answers(paths, pack_question(question), ANSWER_S, ANSWER_BYTES):
        if isinstance(line, ConnectionRefusedError | FileNotFoundError):
            yield path, None
            continue
        try:
            yield (
                path,
                BusError(f"{path}: no answer: {words_of(line)}")
                if isinstance(line, OSError)
                else _read(line),
            )
        except ValueError as error:
            yield path, BusError(f"{path}: no answer: {words_of(error)}")


def _read(line: bytes) -> Answer:
    if not line:
        raise ValueError("the process ended, or refused the request: see its log")
    return unpack_answer(line)
