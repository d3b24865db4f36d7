"""Helpers of the I2C link's tests: quick timing, adapters with faults, and links with checked ledgers."""

import contextlib
from asyncio import get_running_loop
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bridges.media.i2c.link import I2cLink
from bridges.media.i2c.mailbox_segments import Timing
from bridges.media.i2c.memory import MemoryAdapter
from bus.hub import Hub
from tests.helpers.links import i2c_link

QUICK = Timing(poll_s=0.001, idle_s=0.005, resend_s=0.02, stall_s=0.15, rest_s=0.03)


class FaultyAdapter(MemoryAdapter):
    """A memory adapter with a hook before each access, which may raise."""

    before: Callable[[int], None] = staticmethod(lambda address: None)

    def read_i2c_block_data(self, i2c_addr: int, register: int, length: int) -> list[int]:
        self.before(i2c_addr)
        return super().read_i2c_block_data(i2c_addr, register, length)

    def write_i2c_block_data(self, i2c_addr: int, register: int, data: Sequence[int]) -> None:
        self.before(i2c_addr)
        super().write_i2c_block_data(i2c_addr, register, data)


@contextlib.contextmanager
def opened(memory: MemoryAdapter, hub: Hub, **options: Any) -> Iterator[I2cLink]:
    """Open a link to all targets of `memory`; check at the end that its ledger balances."""
    targets = options.pop("targets", tuple(memory.targets))
    settings: dict[str, Any] = {"timing": QUICK, "retry_min_s": 0.005, "retry_max_s": 0.02} | options
    link = i2c_link(1, targets, adapter=settings.pop("adapter", memory.open), **settings)
    link.open(hub, get_running_loop())
    try:
        yield link
    finally:
        link.close()
        balanced(link)
        assert link.stats.queued == 0


def balanced(link: I2cLink) -> None:
    for target in link.targets.values():
        assert target.stats.balance() == 0, target.name


def check(holds: bool) -> None:
    assert holds
