"""A link over an I2C bus: this machine its controller, a mailbox in each target (docs/wire/i2c.md)."""

import contextlib
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, NamedTuple

from bridges.media.device import DeviceLink, DevicePipe
from bridges.media.i2c.adapter import Adapter, open_adapter
from bridges.media.i2c.alert import Alert, GpioAlert, parse_alert
from bridges.media.i2c.mailbox import Timing
from bridges.media.i2c.pipe import I2cBus, TargetPipe
from bridges.media.i2c.poll import Lane, Poller
from bridges.media.i2c.run import LoopRunner, Runner, ThreadRunner
from bridges.media.shedding import Shed, ShedQueue, checked
from bus.errors import LinkError
from bus.hub import Hub, Stats
from bus.wire.envelope import MESSAGE_BYTES_MAX

_ADDRESS_MIN, _ADDRESS_MAX = 0x08, 0x77


class Opened(NamedTuple):
    """What the link holds while it is up."""

    adapter: Adapter
    alert: Alert | None


class I2cLink(DeviceLink[Opened]):
    """`/dev/i2c-<bus>` as a link, with a pipe for each of `targets` (7-bit addresses).

    `poll_ms`: pause between polls of an active target; idle ones are polled every 50 ms. `queue_bytes`
    bounds what waits for each target; `shed`, a whole policy, stands in for it. `alert`: an active-low line
    that the targets pull, `/dev/gpiochip0:17` or an `Alert`; idle targets are then polled once a second.
    `adapter`: an `Adapter` to use instead, which is not closed, or a function that opens one, which is.
    `timing` overrides `poll_ms`. Raises `LinkError` for what can never work. `targets[address]` shows each
    one's `state`.
    """

    def __init__(
        self,
        bus: int,
        targets: Iterable[int],
        poll_ms: float = 5,
        queue_bytes: int = 64 * 1024,
        alert: str | Alert | None = None,
        adapter: Adapter | Callable[[], Adapter] | None = None,
        timing: Timing | None = None,
        shed: Shed | None = None,
        **retry: Any,
    ) -> None:
        self.targets: dict[int, TargetPipe] = {}
        super().__init__(f"i2c:{bus}", **retry)
        addresses = list(targets)
        _check(self.name, bus, addresses, poll_ms)
        self.shed = checked(self.name, shed, queue_bytes, None, MESSAGE_BYTES_MAX)
        self.bus = bus
        self.timing = timing or Timing(poll_s=poll_ms / 1000, idle_s=max(0.05, poll_ms / 1000))
        for address in addresses:
            self.targets[address] = TargetPipe(f"{self.name}:{address:#04x}", address, self.shed)
        self._adapter = adapter
        self._alert = _gpio(self.name, alert) if isinstance(alert, str) else alert
        self._bus_lock = Lock()

    @property
    def stats(self) -> Stats:
        """The sum over all targets, as a copy; `targets[address].stats` has the parts."""
        return total(target.stats for target in self.targets.values())

    @stats.setter
    def stats(self, _: Stats) -> None:
        """What the base class would count in is not needed: the targets count."""

    @property
    def stuck(self) -> bool:
        """Whether no address of the bus answers at all: SDA or SCL is held low, or the adapter hangs."""
        return isinstance(self.pipe, I2cBus) and self.pipe.stuck

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Start opening the bus. Raises `LinkError` where smbus2 is missing."""
        if self._adapter is None:
            try:
                import smbus2  # noqa: F401
            except ImportError as error:
                raise LinkError(f"{self.name}: needs smbus2: install buscoupler[i2c]") from error
        super().open(hub, loop)

    def _open_device(self) -> Opened:
        adapter = self._open_adapter()
        try:
            return Opened(adapter, self._open_alert())
        except OSError:
            self._release_adapter(adapter)
            raise

    def _open_adapter(self) -> Adapter:
        if self._adapter is None:
            return open_adapter(self.bus)
        return self._adapter() if callable(self._adapter) else self._adapter

    def _open_alert(self) -> Alert | None:
        return GpioAlert(*self._alert) if isinstance(self._alert, tuple) else self._alert

    def _release(self, device: Opened) -> None:
        if device.alert is not None and isinstance(self._alert, tuple):
            with contextlib.suppress(OSError):
                device.alert.close()
        self._release_adapter(device.adapter)

    def _release_adapter(self, adapter: Adapter) -> None:
        if adapter is not self._adapter:
            with contextlib.suppress(Exception):  # a driver may raise anything, and it is gone anyway
                adapter.close()

    def _make_pipe(self, device: Opened, on_close: Callable[[str], None]) -> DevicePipe:
        bus = I2cBus(self.name, self.targets, self._lane, self._hub, self._loop, on_close)
        bus.runner = self._runner(device, bus)
        bus.runner.poller = Poller(
            self.name, device.adapter, bus.lanes.values(), self._loop.time, bus.runner.report, device.alert
        )
        return bus

    def _lane(self, target: TargetPipe) -> Lane:
        return Lane(target.address, self.timing, ShedQueue(target.stats, self.shed))

    def _runner(self, device: Opened, bus: I2cBus) -> Runner:
        def release() -> None:
            self._release(device)

        if device.adapter.blocks:
            return ThreadRunner(self._loop, device.alert, bus.on_reports, bus.gone, release, self._bus_lock)
        return LoopRunner(self._loop, device.alert, bus.on_reports, bus.gone, release)


def _check(name: str, bus: int, targets: list[int], poll_ms: float) -> None:
    if bus < 0:
        raise LinkError(f"{name}: the bus is the N of /dev/i2c-N, not {bus}")
    if not targets or len(set(targets)) != len(targets):
        raise LinkError(f"{name}: targets must be one address or more, each once")
    for address in targets:
        if not _ADDRESS_MIN <= address <= _ADDRESS_MAX:
            raise LinkError(f"{name}: {address:#04x} is no target's address: 0x08 to 0x77")
    if poll_ms <= 0:
        raise LinkError(f"{name}: poll_ms must be above 0, not {poll_ms}")


def _gpio(name: str, text: str) -> tuple[str, int]:
    try:
        return parse_alert(text)
    except ValueError as error:
        raise LinkError(f"{name}: {error}") from error


def total(parts: Iterable[Stats]) -> Stats:
    """The sum of several ledgers."""
    made = Stats()
    for part in parts:
        made.add(part)
    return made
