"""A link over an I2C bus: this machine is the controller, each target has a mailbox (docs/wire/i2c.md)."""

import contextlib
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

from bridges.media.device import DeviceLink, OpenPipe, PipeContext, need, preload
from bridges.media.i2c.adapter import Adapter, open_adapter
from bridges.media.i2c.alert import Alert, GpioAlert
from bridges.media.i2c.mailbox_segments import Timing
from bridges.media.i2c.medium import I2c
from bridges.media.i2c.pipe import I2cBus, TargetPipe
from bridges.media.i2c.poll import UNSERVED, Lane, Poller, Report
from bridges.media.i2c.run import LoopRunner, Runner, ThreadRunner
from bridges.media.shedding import Shed, ShedQueue
from bus.hub import Hub, Link
from bus.ledger import Stats


class Opened(NamedTuple):
    """The adapter and the alert line, open while the link is up."""

    adapter: Adapter
    alert: Alert | None


class I2cLink(DeviceLink[Opened]):
    """An I2C bus as a link, with a pipe for each target.

    Idle targets are polled every 50 ms; with an alert line, once a second. `queue_bytes` limits the queue to
    each target; `shed` replaces this limit by a policy. `alert_line` is an `Alert` to use instead of the line
    in the options. `adapter` replaces the kernel's. It is an `Adapter`, which the link does not close, or a
    function that opens one, which the link closes. `timing` overrides `poll_ms`. Raises `LinkError` for
    settings that can never work. `targets[address]` is the pipe of a target, with its `state`.
    """

    def __init__(
        self,
        options: I2c,
        adapter: Adapter | Callable[[], Adapter] | None = None,
        alert_line: Alert | None = None,
        timing: Timing | None = None,
        shed: Shed | None = None,
        **retry: Any,
    ) -> None:
        self.targets: dict[int, TargetPipe] = {}
        super().__init__(f"i2c:{options.bus}", shed, options.queue_bytes, **retry)
        self.options, self._adapter, self._alert = options, adapter, alert_line
        poll_s = options.poll_ms / 1000
        self.timing = timing or Timing(poll_s=poll_s, idle_s=max(0.05, poll_s))
        for address in options.targets or ():
            self.targets[address] = TargetPipe(self.name, address, self.shed)
        self._bus_lock = Lock()
        if adapter is None:
            preload("smbus2")

    @property
    def stats(self) -> Stats:
        """The sum over all targets, as a copy. `targets[address].stats` has the counts of one target."""
        return total(target.stats for target in self.targets.values())

    @stats.setter
    def stats(self, _: Stats) -> None:
        """Ignore the counters that the base class sets, because the targets have their own."""

    @property
    def condition(self) -> str:
        """The targets that answer and serve no mailbox; "" if there are none."""
        stalled = [f"{target.address:#04x}" for target in self.targets.values() if target.state == "stalled"]
        return f"{', '.join(stalled)} {UNSERVED}" if stalled and self.state == "up" else ""

    @property
    def stuck(self) -> bool:
        """Whether no address of the bus answers, because SDA or SCL is held low or the adapter hangs."""
        return isinstance(self.pipe, I2cBus) and self.pipe.stuck

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start to open the bus. Raises `LinkError` if smbus2 is missing."""
        if self._adapter is None:
            need(self.name, "smbus2", "smbus2", "i2c")
        super().open(hub, loop)

    def revise(self, other: Link) -> bool:
        """Take over what a link does, for the targets also while the bus is away."""
        revised = super().revise(other)
        for target in self.targets.values() if self.pipe is None else ():
            target.revise(self.shed)
        return revised

    def _open_device(self) -> Opened:
        adapter = self._open_adapter()
        try:
            return Opened(adapter, self._open_alert())
        except OSError:
            self._release_adapter(adapter)
            raise

    def _open_adapter(self) -> Adapter:
        if self._adapter is None:
            return open_adapter(self.options.bus)
        return self._adapter() if callable(self._adapter) else self._adapter

    def _open_alert(self) -> Alert | None:
        line = self.options.alert_line
        return GpioAlert(*line) if line is not None and self._alert is None else self._alert

    def _release(self, device: Opened) -> None:
        if device.alert is not None and device.alert is not self._alert:
            with contextlib.suppress(OSError):
                device.alert.close()
        self._release_adapter(device.adapter)

    def _release_adapter(self, adapter: Adapter) -> None:
        if adapter is not self._adapter:
            with contextlib.suppress(Exception):  # a driver may raise any exception when its device is gone
                adapter.close()

    def _make_pipe(self, device: Opened, context: PipeContext) -> OpenPipe:
        return I2cBus(self.targets, self._lane, partial(self._runner, device), context)

    def _lane(self, target: TargetPipe) -> Lane:
        return Lane(target.address, self.timing, ShedQueue(target.stats, self.shed))

    def _runner(self, device: Opened, bus: I2cBus) -> Runner:
        def poller(report: Callable[[Report], None]) -> Poller:
            lanes, clock = bus.lanes.values(), self._loop.time
            return Poller(self.name, device.adapter, lanes, clock, report, device.alert)

        release = partial(self._release, device)
        kind = partial(ThreadRunner, self._bus_lock) if device.adapter.blocks else LoopRunner
        return kind(self._loop, poller, device.alert, bus.on_reports, bus.gone, release)


def total(parts: Iterable[Stats]) -> Stats:
    """Return the sum of several `Stats`."""
    made = Stats()
    for part in parts:
        made.add(part)
    return made
