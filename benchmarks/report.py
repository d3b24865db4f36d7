"""The report: it turns samples into Markdown, and is independent of the measurements."""

import os
import platform
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.run import IDLE_PEERS, Load, Sample
from benchmarks.systems import System

MILLION = 1e6
STUCK_MIB = 16.0  # twice the queue of one peer
FIELDS = {"roundtrip": "p50_us", "idle": "idle_mib"}

METHOD = f"""\
- Every system runs on loopback, alone, in a fresh process for each measurement. Systems take turns
  within each repeat. Figures are medians over the repeats. A ratio is taken within one repeat; its
  smallest and largest values stand in brackets. No process is pinned to a core.
- The load generator (`benchmarks/load.c`) is one thread with one epoll. It has the receivers and a sender
  that writes as fast as the device reads, 64 KiB a write ("batched") or one message a write. It checks the
  length of every message that arrives, and the content of every 64th. *Delivered* is counted over the
  window, at all good receivers together. *Lost* is the number of messages sent times the receivers, minus
  the number that arrived; it is counted over the whole run, after nothing more arrived for a second.
- "Octaves" means sizes 16, 32 ... 2048 B, shuffled; each size carries as many bytes as the next. The mean
  is 64 B. "Uniform" means sizes spread evenly over 16 to 2048 B, shuffled; the mean is about 1 KiB.
- `nng_device` and `nn_device` are the libraries' own C functions on one raw bus socket. Python starts them,
  so its interpreter counts in their resident size. For a fair comparison their queues are larger than the
  defaults: NNG's 8192 messages (its maximum) instead of 16, nanomsg's 4 MiB instead of 128 KiB. Both drop
  the messages that a peer does not take. In a trial at 64 B, a forwarder between two raw NNG sockets
  delivered up to 1.7 times the reflector, but it does not serve peers of the same side.
- nats-server speaks its own text protocol, on one subject, with its own settings. It slows the sender
  down for a peer that does not read. Messages that it still holds at the end of a run count as lost here.
- The byte relay (`benchmarks/relay.c`) copies chunks to all other peers as they come, and looks at nothing.
  It is the limit of one thread. With one message a write, a device that gathers messages can be faster.
- Processor time is user and system time of the device over the window, for each delivered message (two per
  round trip).
- Memory of idle peers is the growth of the device's resident size with {IDLE_PEERS} peers that have
  done the handshake. It does not include the kernel's memory for the sockets.
"""


class Target(NamedTuple):
    """A target: the ratio of `field` for ours under `load` to that of `system` under `base`, against `bound`.

    Without a `system` the value itself is compared. `above` says whether the ratio must be above `bound`.
    """

    text: str
    load: str
    bound: float
    system: str = ""
    base: str = ""
    field: str = "delivered_per_s"
    above: bool = True
    difference: bool = False


TARGETS = (
    Target("64 B, batched, 3 receivers: 40 × nng_device", "64B", 40, "nng"),
    Target("64 B: 3 × nats-server", "64B", 3, "nats"),
    Target("64 B: 0.6 of the byte relay", "64B", 0.6, "relay"),
    Target("1 KiB: 7 × nng_device", "1KiB", 7, "nng"),
    Target("1 KiB: 2 × nats-server", "1KiB", 2, "nats"),
    Target("1 KiB: 0.85 of the byte relay", "1KiB", 0.85, "relay"),
    Target("Mixed sizes (octaves): 20 × nng_device", "mixed", 20, "nng"),
    Target("One message a write, 64 B: 1 × nats-server", "64B-single", 1, "nats"),
    Target("64 B, one peer stuck: 0.95 of the rate without it", "64B-stuck", 0.95, "ours", "64B"),
    Target("1 KiB, one peer stuck: 0.95 of the rate without it", "1KiB-stuck", 0.95, "ours", "1KiB"),
    Target(
        f"One peer stuck: at most {STUCK_MIB:.0f} MiB more (peak)",
        "1KiB-stuck",
        STUCK_MIB,
        "ours",
        "1KiB",
        "peak_rss_mib",
        above=False,
        difference=True,
    ),
    Target("Round trip p50: no worse than nng_device", "roundtrip", 1, "nng", field="p50_us", above=False),
    Target(f"{IDLE_PEERS} idle peers: less than 100 MiB", "idle", 100, field="idle_mib", above=False),
)


class Results:
    """Samples by load, system and repeat."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = {(s.load, s.system, s.repeat): s for s in samples}

    def of(self, load: str, system: str) -> list[Sample]:
        return [s for (a, b, _), s in self._samples.items() if (a, b) == (load, system)]

    def values(self, load: str, system: str, field: str) -> list[float]:
        return [s.values[field] for s in self.of(load, system) if field in s.values]

    def middle(self, load: str, system: str, field: str) -> float | None:
        """Return the median over the repeats that worked, or None if none did."""
        values = self.values(load, system, field)
        return median(values) if values else None

    def trouble(self, load: str, system: str) -> str:
        """Return why a measurement failed, shortened to one line; "" if all worked."""
        texts = [s.trouble for s in self.of(load, system) if s.trouble]
        return re.sub(r"\s+", " ", texts[0])[-120:].replace("|", "/") if texts else ""

    def compared(self, target: Target) -> list[float]:
        """Return the target's value for each repeat in which both sides worked."""
        ours = {s.repeat: s.values.get(target.field) for s in self.of(target.load, "ours")}
        if not target.system:
            return [value for value in ours.values() if value is not None]
        base = self.of(target.base or target.load, target.system)
        pairs = [(ours.get(s.repeat), s.values.get(target.field)) for s in base]
        both = [(a, b) for a, b in pairs if a is not None and b is not None]
        if target.difference:
            return [a - b for a, b in both]
        return [a / b for a, b in both if b]


def _number(value: float | None, scale: float = 1.0) -> str:
    if value is None:
        return "–"
    scaled = value / scale
    if scaled and abs(scaled) < 1:
        return f"{scaled:.2g}" if abs(scaled) < 0.1 else f"{scaled:.2f}"
    return f"{scaled:.0f}" if abs(scaled) >= 100 else f"{scaled:.3g}"


def spread(values: Sequence[float]) -> str:
    """Return median, smallest and largest as `3.1 (2.9..3.4)`, or a dash without values."""
    if not values:
        return "–"
    if len(values) == 1:
        return _number(values[0])
    return f"{_number(median(values))} ({_number(min(values))}..{_number(max(values))})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are aligned right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def targets(results: Results) -> str:
    """Return the table of targets: the result, and reached or missed, by the median."""
    rows = []
    for target in TARGETS:
        values = results.compared(target)
        word = "not measured"
        if values:
            good = median(values) >= target.bound if target.above else median(values) <= target.bound
            word = "reached" if good else "**missed**"
        rows.append((target.text, spread(values), word))
    return table(("Target", "Measured", ""), rows)


Column = tuple[str, Callable[[str, str], str]]


def _columns(results: Results, load: Load) -> list[Column]:
    def value(field: str, scale: float = 1.0) -> Callable[[str, str], str]:
        return lambda name, system: _number(results.middle(name, system, field), scale)

    def percent(name: str, system: str) -> str:
        lost = results.middle(name, system, "loss")
        return "–" if lost is None else f"{abs(lost) * 100:.1f}"

    def ratio(name: str, system: str) -> str:
        field = FIELDS.get(load.size, "delivered_per_s")
        return "" if system == "ours" else spread(results.compared(Target("", name, 0, system, field=field)))

    if load.size == "roundtrip":
        cells = [
            ("p50 µs", value("p50_us")),
            ("p99 µs", value("p99_us")),
            ("CPU µs/message", value("cpu_us")),
        ]
        return [*cells, ("p50 ours ÷ it", ratio)]
    if load.size == "idle":
        return [("growth MiB", value("idle_mib")), ("resident MiB", value("rss_mib")), ("ours ÷ it", ratio)]
    speed = [("M delivered/s", value("delivered_per_s", MILLION)), ("ours ÷ it", ratio), ("lost %", percent)]
    return [*speed, ("CPU µs/message", value("cpu_us")), ("peak MiB", value("peak_rss_mib"))]


def load_table(results: Results, load: Load, systems: Sequence[System]) -> str:
    """Return the table of one load, a row for each system with the ratio of ours to it, and their trouble."""
    columns = _columns(results, load)
    rows = [
        [system.label] + [cell(load.name, system.name) for _, cell in columns]
        for system in systems
        if results.of(load.name, system.name)
    ]
    text = table(["System"] + [title for title, _ in columns], rows)
    for system in systems:
        if trouble := results.trouble(load.name, system.name):
            text += f"\n{system.label}: {trouble}\n"
        for field, words in (("errors", "wrong messages"), ("closed", "receivers closed by the device")):
            if found := sum(results.values(load.name, system.name, field)):
                text += f"\n{system.label}: {found:.0f} {words}.\n"
    return text


def machine() -> str:
    """Describe the machine in one line: processor, cores, memory, kernel, interpreter."""
    info = Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.+)", info)
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    cores = len(os.sched_getaffinity(0))
    return (
        f"{model.group(1) if model else platform.machine()}, {cores} cores, {memory_gib:.0f} GiB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )


def markdown(
    results: Results, loads: Sequence[Load], systems: Sequence[System], command: str, duration: str
) -> str:
    """Return the whole page."""
    parts = [
        "# Performance\n\nWritten by `make bench`; do not edit. "
        f"Command: `{command}` ({duration}).\nMachine: {machine()}.\n",
        f"## Targets\n\n{targets(results)}",
        "![Delivered messages a second and round trip](performance.png)\n",
        f"## How it is measured\n\n{METHOD}",
        '## Results\n\n"ours ÷ it" is our figure divided by that system\'s figure in the same repeat.\n',
    ]
    parts += [f"### {load.title}\n\n{load_table(results, load, systems)}" for load in loads]
    parts.append(
        "## To measure a part again\n\n`.venv/bin/python -m benchmarks --only ours,relay --loads 64B,1KiB "
        "--quick --output /tmp/bench`\n"
    )
    return "\n".join(parts)
