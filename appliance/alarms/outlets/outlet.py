"""The outlet of alarms: a thread delivers its notices one after the other, and holds up no gateway."""

from collections.abc import Callable
from typing import Final, Protocol

from appliance.alarms.notice import Notice
from appliance.outbox import PAUSE_S, Outbox
from bus.hub import Hub, State
from bus.ledger import Stats

WAITING: Final = 256
"""Notices that wait; more are dropped as `queue full`."""
TRIED_S: Final = 3600.0
"""The time for which a notice is tried again; then it is dropped as `refused`."""

Deliver = Callable[[Notice], None]
"""A function that delivers a notice. Raises `Refused` if it is of no use to try again, any other exception if
it is."""
Done = Callable[[Notice, bool], None]
"""A function that is told, in any thread, of a notice that was delivered or given up, and whether it was
delivered."""


class Outlet(Protocol):
    """An outlet, which tells people of alarms; seen as a link. `offer` may be called in any thread."""

    stats: Stats
    queue_bytes: int

    @property
    def name(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def state(self) -> State: ...
    @property
    def condition(self) -> str: ...
    @property
    def fault(self) -> str: ...
    @property
    def losses(self) -> int: ...
    def open(self, hub: Hub, loop: object) -> None: ...
    def offer(self, one: Notice, /) -> bool:
        """Queue a notice. Return False if it was dropped."""

    def revise(self, other: object) -> bool: ...
    def close(self) -> None: ...


class ThreadOutlet(Outbox[Notice]):
    """An outlet that calls `deliver` in a thread."""

    def __init__(self, name: str, url: str, deliver: Deliver, done: Done, pause_s: float = PAUSE_S) -> None:
        super().__init__(
            name, url, WAITING, lambda part: deliver(part[0]), done, pause_s=pause_s, tried_s=TRIED_S
        )
