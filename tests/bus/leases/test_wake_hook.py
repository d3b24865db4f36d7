"""The loop that checks the time before it handles events."""

import asyncio
from contextlib import closing

from bus.leases.wake_hook import WakefulLoop


def test_a_guard_that_fails_does_not_end_the_loop() -> None:
    faults: list[str] = []
    with closing(WakefulLoop()) as loop:
        loop.set_exception_handler(lambda _, context: faults.append(str(context["exception"])))
        loop.guard(lambda: [][0])
        assert loop.run_until_complete(asyncio.sleep(0, "done")) == "done"
    assert "list index out of range" in faults
