"""Answers the questions of a trace in a running process: one trace at a time, which ends by itself."""

from asyncio import AbstractEventLoop, TimerHandle, get_running_loop
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from appliance.compose import Appliance
from appliance.explain.arrival import Part
from appliance.explain.watch import Watch
from appliance.explain.words import MARK_BYTES, SECONDS_MAX, Answer, Question, Verb
from appliance.parts.bridge import BridgePart
from appliance.parts.bus import BusPart
from appliance.parts.site import Entry
from bridges.permits import refuses
from bus.wire.batch import from_payloads
from bus.wire.frame import is_frame

KEEP_S: Final = 10.0
"""The time for which a watch is kept, after it has ended, for who asked for it."""


class Tracer:
    """The tracer of one process: it watches the parts of `appliance` for a marked frame, and sends one.

    `file` is the path of its topology, and `only` names the parts that it runs, if not all.
    """

    def __init__(self, appliance: Appliance, file: str, only: Collection[str] = ()) -> None:
        self._appliance, self._file, self._only = appliance, file, tuple(sorted(only))
        self._watch: Watch | None = None
        self._timers: list[TimerHandle] = []
        self._verbs: Mapping[Verb, Callable[[Question], Answer]] = {
            "links": lambda _: self._answer(links=tuple(title for title, _, _ in self._links())),
            "watch": self._begin,
            "send": self._send,
            "collect": self._collect,
        }

    def answer(self, question: Question) -> Answer:
        """Do what a question asks, and return the answer; it has an `error` if the question was refused.

        Call it on the running loop.
        """
        return self._verbs[question.verb](question)

    def _answer(self, **more: Any) -> Answer:
        here = self._appliance
        return Answer(here.topology.name, here.gateway, self._only, self._file, **more)

    def _links(self) -> Iterator[tuple[str, Part, Entry]]:
        """Yield the links by which frames come in from outside, by title."""
        for part in self._parts():
            entries = (entry for entry in part.entries if not entry.inside)
            yield from ((f"{part.title}: {entry.place}", part, entry) for entry in entries)

    def _parts(self) -> list[Part]:
        return [part for part in self._appliance.parts.values() if isinstance(part, BusPart | BridgePart)]

    def _begin(self, question: Question) -> Answer:
        if self._watch is not None:
            return self._answer(error="another trace is under way: try again when it has ended")
        mark, seconds = question.mark.encode(), question.watch_ms / 1000
        if not MARK_BYTES[0] <= len(mark) <= MARK_BYTES[1]:
            return self._answer(error="a mark has {} to {} bytes, not {}".format(*MARK_BYTES, len(mark)))
        if not 0 < seconds <= SECONDS_MAX:
            return self._answer(error=f"a trace lasts for up to {SECONDS_MAX} s, not {seconds:g} s")
        loop = get_running_loop()
        self._watch = Watch(mark, self._parts(), loop)
        self._arm(self._watch, seconds, loop)
        return self._answer()

    def _arm(self, watch: Watch, seconds: float, loop: AbstractEventLoop) -> None:
        """End a watch when its time is over, and forget it `KEEP_S` later if nobody has collected it."""
        self._timers = [
            loop.call_later(seconds, watch.close),
            loop.call_later(seconds + KEEP_S, self._end),
        ]

    def _end(self) -> None:
        for timer in self._timers:
            timer.cancel()
        if self._watch is not None:
            self._watch.close()
        self._watch, self._timers = None, []

    def _is_mine(self, question: Question) -> bool:
        return self._watch is not None and self._watch.mark == question.mark.encode()

    def _send(self, question: Question) -> Answer:
        frame = question.frame
        if self._watch is None or not self._is_mine(question):
            return self._answer(error="this trace has ended")
        if not is_frame(frame) or self._watch.mark not in frame:
            return self._answer(
                error="the bytes to send are no frame with the mark: send a TMQ frame whose data holds it"
            )
        found = [(part, entry) for title, part, entry in self._links() if title == question.link]
        if not found:
            return self._answer(
                error=f"there is no link {question.link} now, perhaps after a reload: list the links again"
            )
        part, entry = found[0]
        if refuses(entry.peers, from_payloads([frame]), sending=True):
            return self._answer(
                error=f"{question.link}: no peer on its list may send this frame: see `peers` of that address"
            )
        self._watch.send(part, entry, frame)
        return self._answer()

    def _collect(self, question: Question) -> Answer:
        watch = self._watch
        if watch is None or not self._is_mine(question):
            return self._answer(error="this trace has ended")
        hops, more = watch.hops(), watch.more
        self._end()
        return self._answer(hops=hops, more=more)
