"""The conversation of a service with its catalog: it registers, beats, and registers again. Pure.

Times are arguments, in seconds of a monotonic clock; each method returns the next step (docs/dbp.md).
"""

from collections import deque
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from devices.dbp.catalog import wire
from devices.dbp.catalog.body import pack_object
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.entry import LIVELINESS, is_interval
from devices.dbp.catalog.life import Pulse, State, Watch
from devices.dbp.catalog.wire import Command, Received, Refused

ANSWER_S: Final = 2.0  # the wait for the answer to a registration, before a new connection is tried
INTERVAL_MIN_S: Final = 0.01  # bounds of an agreed interval: a false catalog must not make us busy, or silent
INTERVAL_MAX_S: Final = 3600.0
DENIED_MIN_S: Final = 1.0  # the first pause after a denial; each further one doubles it, up to
DENIED_MAX_S: Final = 30.0
UPDATES_MAX: Final = 64
"""Updates that may wait for their answers."""


class RegistrationState(Enum):
    """The state of a service's registration with its catalog."""

    ASKING = "asking"
    LISTED = "listed"
    DENIED = "denied"
    CLOSED = "closed"


class Step(NamedTuple):
    """The next step, in this order: make a new connection, send commands over it, send a heartbeat by UDP.

    `answer` is the catalog's answer to an update: the reasons of a denial, or () for an acknowledgement; None
    if there is no answer.
    """

    renew: bool = False
    say: tuple[Command, ...] = ()
    beat: bool = False
    answer: tuple[str, ...] | None = None


NOTHING: Final = Step()
_BOUNDS: Final = Bounds()


def refusal(word: bytes, fields: Mapping[str, Any]) -> str:
    """Return why a catalog would hear a command with these fields as none, and never answer it; or ""."""
    try:
        command = Command(word, (pack_object(dict(fields)),))
    except (TypeError, ValueError, RecursionError):
        return f"json: {wire.REFUSED['json']}"
    parsed = wire.parse(wire.pack(command, False, 0.0), _BOUNDS)
    return f"{parsed.reason}: {wire.REFUSED[parsed.reason]}" if isinstance(parsed, Refused) else ""


class Registration:
    """The registration of one service. `fields` are registered with its name.

    `interval_s` is the offered interval of heartbeats; `reasons` are those of the last denial.
    """

    def __init__(self, name: str, fields: Mapping[str, Any], interval_s: float) -> None:
        self.name = name
        self.fields = {**fields, "name": name, LIVELINESS: 1000 * interval_s}
        self.state = RegistrationState.CLOSED
        self.reasons: tuple[str, ...] = ()
        self._offered_s = self._interval_s = interval_s
        self._due_s = 0.0
        self._pause_s = DENIED_MIN_S
        self._restarted_s: float | None = None
        self._unanswered: deque[Mapping[str, Any]] = deque(maxlen=2 * UPDATES_MAX)  # changes; of a beat none
        self._renew_watch(0.0)  # read while it is listed only

    @property
    def interval_s(self) -> float:
        """The interval of heartbeats that is agreed now."""
        return self._interval_s

    def open(self, now_s: float) -> Step:
        """Begin: register over a new connection. What a catalog would not hear is denied at once."""
        for changes in self._unanswered:
            self.fields |= changes
        self._unanswered.clear()
        if refused := refusal(wire.REGISTRATION, self.fields):
            return self._denied((refused,), now_s)
        self.state, self._due_s = RegistrationState.ASKING, now_s + ANSWER_S
        return Step(renew=True, say=(Command(wire.REGISTRATION, (pack_object(self.fields),)),))

    def tick(self, now_s: float) -> Step:
        """Return the step that is due, or `NOTHING`."""
        if self.state is RegistrationState.LISTED:
            return self._live(now_s)
        if self.state is RegistrationState.CLOSED or now_s < self._due_s:
            return NOTHING
        return self.open(now_s)

    def _live(self, now_s: float) -> Step:
        if self._watch.state(now_s) is State.GONE:
            return self.open(now_s)
        if self._watch.ask(now_s):  # the catalog missed a beat, or we its answer: over TCP now
            self._unanswered.append({})
            self._pulse.said(now_s)
            return Step(say=(Command(wire.HEARTBEAT, (self.name.encode(),)),))
        if self._pulse.due(now_s):
            self._pulse.said(now_s)
            return Step(beat=True)
        return NOTHING

    def heard(self, received: Received, now_s: float) -> Step:
        """Take a command that came over the connection."""
        if self.state is RegistrationState.CLOSED:
            return NOTHING
        if received.word == wire.DISCONNECT:
            return self._restart(now_s)
        if self.state is not RegistrationState.LISTED:
            return self._judged(received, now_s)
        self._watch.heard(now_s)
        if received.word == wire.PING:
            return self._said(now_s, Command(wire.PONG, (self.name.encode(),)))
        if received.word == wire.DENIED:
            return self._answered(received.texts or ("denied",))
        if received.word == wire.ACKNOWLEDGED:
            self._agree(received, now_s)
            return self._answered(())
        return NOTHING

    def _answered(self, reasons: tuple[str, ...]) -> Step:
        """Take the answer to the oldest command without one. A denied update changes nothing."""
        changes = self._unanswered.popleft() if self._unanswered else {}
        if not reasons:
            self.fields |= changes
        return Step(answer=reasons) if changes or reasons else NOTHING

    def _judged(self, received: Received, now_s: float) -> Step:
        """Take the answer to a registration."""
        if received.word == wire.APPROVED:
            self.state, self.reasons, self._pause_s = RegistrationState.LISTED, (), DENIED_MIN_S
            self._interval_s = self._offered_s
            self._agree(received, now_s)
            self._renew_watch(now_s)
        elif received.word == wire.DENIED:
            return self._denied(received.texts or ("denied",), now_s)
        return NOTHING

    def _denied(self, reasons: tuple[str, ...], now_s: float) -> Step:
        self.state, self.reasons = RegistrationState.DENIED, reasons
        self._due_s = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, DENIED_MAX_S)
        return NOTHING

    def _agree(self, received: Received, now_s: float) -> None:
        agreed_ms = received.fields.get(LIVELINESS)
        if is_interval(agreed_ms):
            self._interval_s = min(max(agreed_ms, 1000 * INTERVAL_MIN_S), 1000 * INTERVAL_MAX_S) / 1000
            self._renew_watch(now_s)

    def _renew_watch(self, now_s: float) -> None:
        self._watch = Watch(self._interval_s, True, now_s)
        self._pulse = Pulse(self._interval_s, now_s)
        self._pulse.said(now_s)

    def _said(self, now_s: float, command: Command) -> Step:
        self._pulse.said(now_s)
        return Step(say=(command,))

    def datagram(self, received: Received, now_s: float) -> Step:
        """Take a datagram from the catalog's address."""
        if self.state is not RegistrationState.LISTED or received.texts != (self.name,):
            return NOTHING
        if received.word == wire.DISCONNECT:
            return self._restart(now_s)
        self._watch.heard(now_s)
        return NOTHING

    def _restart(self, now_s: float) -> Step:
        """Register over a new connection, at most once in an interval: a disconnect can be forged."""
        if self._restarted_s is not None and now_s < self._restarted_s + self._interval_s:
            self.state, self._due_s = RegistrationState.ASKING, self._restarted_s + self._interval_s
            return Step(renew=True)
        self._restarted_s = now_s
        return self.open(now_s)

    def unfit(self, changes: Mapping[str, Any]) -> str:
        """Return why a catalog would not hear an update, or the registration with it; or ""."""
        named = {**changes, "name": self.name}
        return refusal(wire.UPDATE, named) or refusal(wire.REGISTRATION, {**self.fields, **named})

    def update(self, changes: Mapping[str, Any], now_s: float) -> Step:
        """Change fields, none of which is `unfit`. The answer comes later, as the `answer` of a step.

        While the service is not listed, nothing is sent: its next registration has the changes.
        """
        named = {**changes, "name": self.name}
        if self.state is not RegistrationState.LISTED:
            self.fields |= named
            return Step(answer=())
        self._unanswered.append(named)
        return self._said(now_s, Command(wire.UPDATE, (pack_object(named),)))

    def close(self) -> Step:
        """End the registration: the catalog must remove the service."""
        was, self.state = self.state, RegistrationState.CLOSED
        if was is not RegistrationState.LISTED:
            return NOTHING
        return Step(say=(Command(wire.DISCONNECT, (self.name.encode(),)),))
