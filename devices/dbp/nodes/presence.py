"""The presence of a service in its catalog: registration and heartbeats, over one connection at a time."""

import asyncio
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from bus.errors import BusError
from devices.dbp.catalog.wire import Received
from devices.dbp.nodes.line import Line
from devices.dbp.nodes.registering import UPDATES_MAX, Registration, RegistrationState, Step
from devices.dbp.zeromq.limits import Limits

INTERVAL_S: Final = 1.0
UPDATE_S: Final = 5.0
"""The wait for the answer to an update."""
_DRAIN_S: Final = 1.0  # for the last command


class NodeError(BusError):
    """A node cannot do what a program asked for; the text says why."""


class Presence:
    """The presence of the service `name` in `catalog`, `tcp://HOST:PORT`; None: the catalog of a beacon.

    `interval_s` is the offered interval of heartbeats. `limits` are those of the connection.
    """

    def __init__(self, name: str, catalog: str | None, interval_s: float, limits: Limits) -> None:
        self.name = name
        self._interval_s = interval_s
        self._line = Line(catalog, self._on_heard, self._on_datagram, _quick(limits, interval_s))
        self._registration = Registration(name, {}, interval_s)
        self._timer: TimerHandle | None = None
        self._changed = asyncio.Event()
        self._updates: list[asyncio.Future[tuple[str, ...]]] = []

    @property
    def state(self) -> RegistrationState:
        """The state of the registration."""
        return self._registration.state

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons of the last denial."""
        return self._registration.reasons

    @property
    def fault(self) -> str:
        """The reason why the service is not listed now; "" if none is known, or it is."""
        if self.state is RegistrationState.LISTED:
            return ""
        return "; ".join(self.reasons) or self._line.fault

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields that the service registers."""
        return self._registration.fields

    def open(self, fields: Mapping[str, Any], loop: AbstractEventLoop) -> None:
        """Begin to register these fields."""
        self._loop = loop
        self._registration = Registration(self.name, fields, self._interval_s)
        self._do(self._registration.open(loop.time()))
        self._tick()

    async def changed(self) -> None:
        """Wait for the next event between the service and its catalog."""
        self._changed.clear()
        await self._changed.wait()

    async def listed(self) -> None:
        """Wait until the catalog lists the service. Raises `NodeError` with the reasons of a denial."""
        while self.state is not RegistrationState.LISTED:
            if self.state is RegistrationState.DENIED:
                raise NodeError(f"{self.name} was denied: {'; '.join(self.reasons)}")
            await self.changed()

    async def update(self, **fields: Any) -> None:
        """Change registered fields.

        Raises `NodeError` with the reasons of a denial, without an answer, and while `UPDATES_MAX` others
        wait.
        """
        if unfit := self._registration.unfit(fields):
            raise NodeError(f"{self.name}: the update was denied: {unfit}")
        if len(self._updates) >= UPDATES_MAX:
            raise NodeError(f"{self.name}: {UPDATES_MAX} updates wait for their answers: wait for one")
        answer: asyncio.Future[tuple[str, ...]] = self._loop.create_future()
        self._updates.append(answer)
        self._do(self._registration.update(fields, self._loop.time()))
        try:
            reasons = await asyncio.wait_for(answer, UPDATE_S)
        except TimeoutError:
            raise NodeError(f"{self.name}: the update had no answer within {UPDATE_S:g} s") from None
        if reasons:
            raise NodeError(f"{self.name}: the update was denied: {'; '.join(reasons)}")

    def _tick(self) -> None:
        self._timer = self._loop.call_later(self._registration.interval_s / 8, self._tick)
        self._do(self._registration.tick(self._loop.time()))

    def _on_heard(self, received: Received) -> None:
        self._do(self._registration.heard(received, self._loop.time()))

    def _on_datagram(self, received: Received) -> None:
        self._do(self._registration.datagram(received, self._loop.time()))

    def _do(self, step: Step) -> None:
        if step.renew:
            self._line.renew(self._loop)
            self._fail_updates()
        for command in step.say:
            self._line.say(command)
        if step.beat:
            self._line.beat(self.name)
        if step.answer is not None and self._updates:
            answer = self._updates.pop(0)
            if not answer.done():
                answer.set_result(step.answer)
        self._changed.set()

    def _fail_updates(self) -> None:
        """Let updates that wait for an answer succeed: the connection ended, and a registration follows."""
        for answer in self._updates:
            if not answer.done():
                answer.set_result(())
        self._updates.clear()

    async def leave(self) -> None:
        """Tell the catalog to remove the service, and close."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._do(self._registration.close())
            with suppress(asyncio.CancelledError):
                await self._line.drain(_DRAIN_S)
        self.close()

    def close(self) -> None:
        """Close at once: the catalog notices the silence. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._line.close()


def _quick(limits: Limits, interval_s: float) -> Limits:
    """Return limits that reconnect within an interval when the catalog comes back."""
    pause_s = max(0.01, min(limits.retry_max_s, interval_s / 2))
    return replace(limits, retry_min_s=min(limits.retry_min_s, pause_s), retry_max_s=pause_s)
