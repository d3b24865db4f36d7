"""Live readings of the machine that the demo runs on, for its sensors to send."""

import itertools
from collections.abc import Iterator

import psutil


def processor() -> str:
    """Read how busy the processors are since the last call, in percent."""
    return f"{psutil.cpu_percent(interval=None):.1f} %"


def load() -> str:
    """Read the load average of the last minute."""
    return f"{psutil.getloadavg()[0]:.2f}"


def memory() -> str:
    """Read how much memory is in use, in percent."""
    return f"{psutil.virtual_memory().percent:.1f} %"


def network() -> str:
    """Read the bytes that all interfaces have carried, in both directions."""
    counters = psutil.net_io_counters()
    return f"{counters.bytes_recv + counters.bytes_sent} bytes"


def temperature() -> str:
    """Read the first temperature sensor. Raises `IndexError` if there is none."""
    found = list(itertools.chain.from_iterable(psutil.sensors_temperatures().values()))
    return f"{found[0].current:.1f} C"


READINGS = (processor, memory, temperature, network, load)


def names() -> list[str]:
    """Return the names of all readings."""
    return [source.__name__ for source in READINGS]


def serial_sensor() -> Iterator[tuple[str, str]]:
    """Return an endless iterator of names and values: processor, memory, and temperature if available."""
    has_temperature = bool(getattr(psutil, "sensors_temperatures", dict)())
    sources = [processor, memory, *([temperature] if has_temperature else [])]
    return ((source.__name__, source()) for source in itertools.cycle(sources))


def can_sensor() -> Iterator[tuple[str, str]]:
    """Return an endless iterator of names and values: network and load."""
    return ((source.__name__, source()) for source in itertools.cycle([network, load]))
