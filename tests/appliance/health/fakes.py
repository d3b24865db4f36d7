"""A link in a given state, for tests of the health of a gateway."""

import asyncio

from bus.hub import Hub, Link, State


class FakeLink:
    """A link that never opens, with a state, a condition and a fault."""

    name = url = "fake"
    losses, queue_bytes = 0, 0

    def __init__(self, state: State = "up", condition: str = "", fault: str = "") -> None:
        self.state: State = state
        self.condition, self.fault = condition, fault

    def open(self, hub: Hub, loop: asyncio.AbstractEventLoop) -> None: ...
    def close(self) -> None: ...

    def revise(self, _: Link) -> bool:
        return False
