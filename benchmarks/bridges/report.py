"""The report on bridges: it turns samples into Markdown, and is independent of the measurements."""

from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.bridges.systems import BridgeLoad, BridgeSystem
from benchmarks.report import MILLION, Results, Target, machine, spread, table
from benchmarks.run import Sample

METHOD = """\
- The bridge runs in a process of its own, on one core (`taskset`). The load generator, which is also the
  receiver, runs on the other core. *In* counts frames that the bridge has taken, *out* frames that the
  receiver got, both over the window. *Lost* counts the frames that should have arrived and did not, over the
  whole run, after nothing more arrived for two seconds. Figures are medians over the repeats. A ratio is
  taken within one repeat; its smallest and largest values stand in brackets.
- *CPU* is user and system time of the bridge's process, all threads, for each frame in. *Of its core* is the
  share of its core that it used. If this is below 1, either another process was on the core, or the load was
  the limit. Then "a core" (frames in for each second of processor time) is the better figure; it is also the
  one to compare with other machines.
- `benchmarks/bridges/load.c` sends TMQ frames as fast as the bridge reads, 64 KiB a write ("batched") or
  one frame a write. Their two tokens take 50 values in random order. 5 of these must not come out: they
  are outside of the prefix that the bridge carries, or denied inside it. The receiver checks the size and
  content of every frame, each envelope (its magic, hops, length, origin; a gap in the sequence is a
  missing frame), and the CRC-32 of every 16th datagram.
- Ours is `buscoupler run` on a topology of a plain bus and a bridge, with default settings. It filters each
  frame, gives it an envelope with a sequence number, and keeps the ledger. After the run the ledger
  must balance. Multicast is sent on the loopback interface.
- `zmq_proxy` is libzmq's C function between XSUB and XPUB, from pyzmq, with its I/O thread on the same
  core. Generator and receiver speak ZMTP 3.0. The receiver's prefix subscriptions are the filter: one, or 45
  if frames inside the prefix are denied, because ZeroMQ cannot deny. It does not change messages and does
  not number them. Its high-water marks are raised from 1000 to 1,000,000 messages.
- The zenoh router is a session in router mode of eclipse-zenoh. Its clients, publisher and subscriber, are
  Python on top of its Rust library (`benchmarks/bridges/zenoh_load.py`), with one call for each put and each
  sample, on the other core. They are the limit, not the router, so look at "a core". A publisher of zenoh
  does not send frames that nobody subscribed to; such frames still count as in. zenoh has no option "one
  message a write". Its 64 B are the payload, without the key.
"""

NEEDED_FPS = 500_000
TARGETS = (
    Target(
        "TCP to TCP trunk, filter and envelopes: 0.5 M frames/s in", "trunk", NEEDED_FPS, field="in_per_s"
    ),
    Target("The same with denied patterns: 0.5 M frames/s in", "trunk-deny", NEEDED_FPS, field="in_per_s"),
    Target(
        "TCP to multicast, filter and envelopes: 0.5 M frames/s in", "multicast", NEEDED_FPS, field="in_per_s"
    ),
    Target(
        "TCP to multicast with denied patterns: 0.5 M frames/s in",
        "multicast-deny",
        NEEDED_FPS,
        field="in_per_s",
    ),
)


def page(
    samples: Sequence[Sample],
    loads: Sequence[BridgeLoad],
    systems: Sequence[BridgeSystem],
    command: str,
    duration: str,
) -> str:
    """Return the whole page."""
    results = Results(_with_capacity(samples))
    parts = [
        "# Performance of bridges\n\nWritten by `make bench`; do not edit. "
        f"Command: `{command}` ({duration}).\nMachine: {machine()}.\n",
        f"## Targets\n\n{targets(results)}",
        "## Compared\n\n"
        "Our figure divided by the other's, in the same repeat: frames a second of one core.\n\n"
        + compared(results, loads, systems),
        f"## How it is measured\n\n{METHOD}",
        "## Results\n",
    ]
    parts += [f"### {load.title}\n\n{load_table(results, load, systems)}" for load in loads]
    return "\n".join(parts)


def _with_capacity(samples: Sequence[Sample]) -> Iterator[Sample]:
    for sample in samples:
        cpu_us = sample.values.get("cpu_us")
        yield sample._replace(values=sample.values | {"per_core": MILLION / cpu_us}) if cpu_us else sample


def targets(results: Results) -> str:
    """Return the table of targets: the result in M frames/s, and reached or missed, by the median."""
    rows = []
    for target in TARGETS:
        values = results.compared(target)
        per_core = results.values(target.load, "ours", "per_core")
        word = "not measured"
        if values:
            word = "reached" if median(values) >= target.bound else "**missed**"
        rows.append((target.text, millions(values), millions(per_core), word))
    return table(("Target", "M in/s", "a core", ""), rows)


def millions(values: Sequence[float]) -> str:
    return spread([value / MILLION for value in values])


def compared(results: Results, loads: Sequence[BridgeLoad], systems: Sequence[BridgeSystem]) -> str:
    others = [system for system in systems if system.name != "ours"]
    rows = []
    for load in loads:
        ratios = [
            spread(results.compared(Target("", load.name, 0, system.name, field="per_core")))
            for system in others
        ]
        if set(ratios) - {"–"}:
            rows.append((load.title, *ratios))
    return table(("Load", *(f"ours ÷ {system.label}" for system in others)), rows)


def load_table(results: Results, load: BridgeLoad, systems: Sequence[BridgeSystem]) -> str:
    """Return the table of one load, a row for each system, then its losses by reason and its trouble."""
    measured = [system for system in systems if results.of(load.name, system.name)]
    rows = [_row(results, load.name, system) for system in measured]
    text = table(
        ("System", "M in/s", "M out/s", "M in/s a core", "CPU µs/frame", "of its core", "lost %"), rows
    )
    for system in measured:
        text += "".join(f"\n{system.label}: {words}.\n" for words in remarks(results, load.name, system.name))
    return text


def _row(results: Results, load: str, system: BridgeSystem) -> tuple[str, ...]:
    def values(field: str) -> list[float]:
        return results.values(load, system.name, field)

    speeds = [millions(values(field)) for field in ("in_per_s", "out_per_s", "per_core")]
    lost = [abs(100 * value) for value in values("loss")]
    return (system.label, *speeds, spread(values("cpu_us")), spread(values("core")), spread(lost))


def remarks(results: Results, load: str, system: str) -> Iterator[str]:
    """Yield remarks on a system beside its numbers: trouble, wrong frames, drops by reason."""
    if trouble := results.trouble(load, system):
        yield trouble
    fields = dict.fromkeys(name for sample in results.of(load, system) for name in sample.values)
    words = {
        "errors": "wrong frames",
        "unbalanced": "pipes that do not balance",
        "closed": "receivers closed",
    }
    words |= {"missing": "gaps in the sequence", "overflow": "datagrams lost in the receiver's own buffer"}
    words |= {name: f"{name} (all repeats)" for name in fields if name.startswith(("dropped ", "rejected "))}
    for field, text in words.items():
        if total := sum(results.values(load, system, field)):
            yield f"{total:.0f} {text}"
