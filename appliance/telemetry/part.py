"""The telemetry of a topology: it follows sampled messages through bridges, and sends spans."""

import logging
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic_ns, time_ns
from typing import Final, NamedTuple

from appliance.explain.arrival import Arrival
from appliance.explain.hop import Exit, Hop
from appliance.parts.bridge import BridgePart
from appliance.parts.changes import Change, of_settings
from appliance.parts.device import DevicePart, Joined
from appliance.parts.site import Revision, Site
from appliance.status.rows import LinkRow
from appliance.telemetry.lines import ExportedLines
from appliance.telemetry.otlp import TRACES, Span, Value
from appliance.telemetry.sampling import sampled, span_id, trace_id
from appliance.telemetry.sender import Entry, Sender
from appliance.version import version
from bridges.forms import EnvelopedBatch
from bus.hub import Link, Pipe, arrived_ns
from bus.ledger import Stats
from bus.names import Names, table_of
from bus.reasons import kind_of
from bus.wire.batch import Batch
from bus.wire.envelope import Envelope, take_apart
from bus.wire.frame import unpack
from devices.telemetry.device import TelemetrySpec
from topologies.resolved.resolve import ResolvedDevice

FOLLOWED: Final = 64
"""Messages that are followed at a time; more are not traced, and counted as `limit`."""
_LOOK_S: Final = 0.02
_FOLLOW_NS: Final = 2_000_000_000  # then the span ends with what is known


class _Followed(NamedTuple):
    """A message that came by a bridge at `came_ns`, and what becomes of it there."""

    envelope: Envelope
    content: bytes
    came_ns: int
    arrival: Arrival


class TelemetryPart(DevicePart):
    """The telemetry of the parts `joined`. Bridges without trunks have no envelopes to trace."""

    def __init__(self, resolved: ResolvedDevice, site: Site, joined: Sequence[Joined]) -> None:
        super().__init__(resolved, site, joined)
        self._sender, self._skipped = self._make(resolved), Stats()
        self._lines = ExportedLines(self._sender)
        self._loop: AbstractEventLoop | None = None
        self._undo: list[Callable[[], None]] = []
        self._followed: deque[_Followed] = deque()
        self._timer: TimerHandle | None = None
        self.hub.keep(self._sender.name, self._sender.stats)
        self.hub.keep(self._sender.name, self._skipped)

    def _make(self, resolved: ResolvedDevice) -> Sender:
        spec = spec_of(resolved)
        resource = {"service.name": "buscoupler", "service.instance.id": resolved.gateway}
        return Sender(self.name, spec.to, spec.ca_file, {**resource, "service.version": version()})

    @property
    def _names(self) -> Names:
        return table_of(self.resolved.names)

    @property
    def links(self) -> list[Link]:
        return [self._sender]

    @property
    def rows(self) -> list[LinkRow]:
        return [LinkRow(self.hub, self._sender.name, self._sender, far="inside")]

    @property
    def watched(self) -> list[LinkRow]:
        return self.rows

    def start(self, loop: AbstractEventLoop) -> list[Change]:
        self._loop = loop
        failed = self.attempt("", self._sender, self.hub, loop)
        self._follow()
        return failed

    def _follow(self) -> None:
        """Listen in the parts as they are now."""
        self._leave()
        for part in self.joined:
            if isinstance(part, BridgePart):
                entering, leaving = partial(self._enters, part), partial(self._leaves, part)
                part.hub.tap(entering)
                part.hub.tap_sent(leaving)
                self._undo += partial(part.hub.untap, entering), partial(part.hub.untap_sent, leaving)
        if spec_of(self.resolved).logs:
            logging.getLogger().addHandler(self._lines)
            self._undo.append(partial(logging.getLogger().removeHandler, self._lines))

    def _leave(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _enters(self, part: BridgePart, batch: Batch, origin: Pipe | None) -> None:
        """See a batch inside a bridge, just before it is offered to the ports."""
        if isinstance(batch, EnvelopedBatch):
            for message in sampled(batch, spec_of(self.resolved).one_in):
                self._begin(part, message, batch, origin)

    def _begin(self, part: BridgePart, message: bytes, batch: Batch, origin: Pipe | None) -> None:
        envelope, content, framed = take_apart(message)
        if envelope is None or not framed or self._loop is None:
            return
        if len(self._followed) >= FOLLOWED:
            self._skipped.offered += 1
            return self._skipped.drop("limit")
        arrival = Arrival(part, origin, monotonic_ns())
        arrival.enter()
        came = arrived_ns(batch, origin, time_ns())[0] if batch.count == 1 else time_ns()
        self._followed.append(_Followed(envelope, content, came, arrival))
        if self._timer is None:
            self._timer = self._loop.call_later(0, self._look)

    def _leaves(self, part: BridgePart, batch: Batch, port: Pipe | None) -> None:
        """See a batch that a bridge hands to a pipe, after all rules."""
        for one in self._followed:
            if one.arrival.part is part and one.content in batch.data:
                one.arrival.handed(port)

    def _look(self) -> None:
        """Send the spans of messages whose outcome is known, or that were followed long enough."""
        self._timer, now_ns, rest = None, monotonic_ns(), deque[_Followed]()
        for one in self._followed:
            waits = one.arrival.look(now_ns)
            if waits and now_ns - one.arrival.at_ns < _FOLLOW_NS:
                rest.append(one)
            else:
                self._sender.offer(Entry(TRACES, self._span(one).fields()))
        self._followed = rest
        if rest and self._loop is not None:
            self._timer = self._loop.call_later(_LOOK_S, self._look)

    def _span(self, one: _Followed) -> Span:
        part, hop = one.arrival.part, one.arrival.hop()
        assert isinstance(part, BridgePart)
        trace = trace_id(one.envelope.key, one.came_ns)
        first = one.envelope.origin == part.hub.origin and part.beside is None
        own = span_id(trace) if first else span_id(trace, f"{hop.gateway}/{hop.part}")
        shift_ns = time_ns() - monotonic_ns()
        trunks = {leg.end.plan.place for leg in part.legs if leg.side.trunk}
        events = [(_at(way, hop) + shift_ns, _words(way, way.to in trunks)) for way in hop.exits]
        attributes: dict[str, Value] = {
            "buscoupler.origin": f"{one.envelope.origin:08x}",
            "buscoupler.sequence": one.envelope.sequence,
            "buscoupler.hops_left": one.envelope.hops,
            "buscoupler.pattern": self._names.show(unpack(one.content)[1]),
            "buscoupler.bytes": len(one.content),
            "buscoupler.by": hop.by,
            "buscoupler.trace_ends": ", ".join(
                way.to for way in hop.exits if way.pipes and way.to not in trunks
            ),
        }
        end_ns = max((at_ns for at_ns, _ in events), default=one.came_ns)
        parent = "" if first else span_id(trace)
        name = f"{hop.part} on {hop.gateway}"
        return Span(trace, own, parent, name, one.came_ns, end_ns, attributes, events, _trouble(hop))

    def revise(self, resolved: ResolvedDevice, joined: Sequence[Joined]) -> Revision:
        """Return the change to the telemetry as `resolved` has it. Another collector takes another sender."""
        spec, old = spec_of(resolved), spec_of(self.resolved)
        names = self.differing(resolved)
        anew = (spec.to, spec.ca_file) != (old.to, old.ca_file) or self.has_renewed(resolved)
        return Revision(
            of_settings(self.title, names),
            lambda: self._take(resolved, joined),
            lambda loop: self._go_on(loop, anew),
        )

    def _go_on(self, loop: AbstractEventLoop, anew: bool) -> list[Change]:
        if not anew:
            self._follow()
            return []
        self.close()
        self.hub.fold(self._sender.name, self._sender.stats)
        self._sender = self._make(self.resolved)
        self._lines = ExportedLines(self._sender)
        self.hub.keep(self._sender.name, self._sender.stats)
        return self.start(loop)

    def close(self) -> None:
        self._leave()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._followed.clear()
        super().close()


def spec_of(resolved: ResolvedDevice) -> TelemetrySpec:
    """Return the record of telemetry."""
    spec = resolved.spec
    assert isinstance(spec, TelemetrySpec)
    return spec


def _at(way: Exit, hop: Hop) -> int:
    return hop.at_ns if way.at_ns is None else way.at_ns


def _words(way: Exit, trunk: bool) -> str:
    """Say what became of a message at a way out; beyond a side without envelopes nobody knows its id."""
    if not way.pipes:
        return f"not sent by {way.to}: {', '.join((*way.stopped, *way.remarks)) or 'it waits'}"
    end = "" if trunk else "; the trace ends here: this side sends no envelope"
    return f"sent by {way.to}{end}" + (f" ({', '.join(way.remarks)})" if way.remarks else "")


def _trouble(hop: Hop) -> str:
    """Return the drops of a hop that nobody intended, in words."""
    found = [
        f"{way.to}: {reason}" for way in hop.exits for reason in way.stopped if kind_of(reason) == "trouble"
    ]
    return "; ".join(found)
