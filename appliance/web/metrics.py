"""A status as OpenMetrics, by prometheus-client: worked out at each scrape, with labels by link."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    StateSetMetricFamily,
)
from prometheus_client.exposition import choose_encoder

from appliance.status.conditions import carries
from appliance.status.health import WORDS
from appliance.status.words import unlisted

Status = Mapping[str, Any]
Family = CounterMetricFamily | GaugeMetricFamily
_ROLES = ("active", "standby")
_LINK = ("hub", "link")
_ROLE = ("bridge", "lease")
_COUNTERS = {
    "received": ("buscoupler_messages_received", "Messages that came in by a link."),
    "sent": ("buscoupler_messages_sent", "Messages that left by a link."),
    "received_bytes": ("buscoupler_received_bytes", "Bytes of messages that came in by a link."),
    "sent_bytes": ("buscoupler_sent_bytes", "Bytes of messages that left by a link."),
    "noise_bytes": ("buscoupler_noise_bytes", "Bytes that came in by a link and became no message."),
}
_GAUGES = {
    "live": ("buscoupler_link_peers", "Peers of a link now."),
    "queued": ("buscoupler_messages_queued", "Messages that wait to leave by a link."),
    "balance": (
        "buscoupler_messages_unaccounted",
        "Messages that the ledger of a link does not account for.",
    ),
}
_KEPT = {
    "messages": ("buscoupler_kept_messages", "Messages in a journal that an end has not acknowledged."),
    "bytes": ("buscoupler_kept_bytes", "Bytes of these messages."),
    "oldest_ms": ("buscoupler_kept_age_milliseconds", "Age of the oldest of them."),
}
_REASONS = {
    "dropped": ("buscoupler_messages_dropped", "Messages that were not sent, by reason (docs/policies.md)."),
    "rejected": ("buscoupler_input_rejected", "Input that became no message, by reason (docs/policies.md)."),
}


class _Collector:
    """A collector for a registry, with the metrics of one status."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        status = self._status
        yield from _process(status)
        yield from _health(status)
        yield from _plant(status)
        yield from _certificates(status)
        yield from _alarms(status)
        yield from _hubs(status)
        yield from _links(status)
        yield from _kept(status)
        yield from _failover(status)
        yield from _services(status)
        yield from _taps(status)
        yield from _transit(status)
        yield from _values(status)


def render(status: Status, accept: str) -> tuple[bytes, str]:
    """Return the metrics and their content type: OpenMetrics, or older text if `accept` asks for it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(status))
    encode, kind = choose_encoder(accept or "application/openmetrics-text; version=1.0.0")
    return encode(registry), kind


def _health(status: Status) -> Iterator[Metric]:
    if "health" in status:
        family = StateSetMetricFamily("buscoupler_health", "Whether the gateway is well (docs/status.md).")
        family.add_metric((), {word: word == status["health"]["word"] for word in WORDS})
        yield family


def _plant(status: Status) -> Iterator[Metric]:
    if "plant" in status:
        words = "Gateways that run another file of the topology than this one."
        others = sum(bool(row.get("other_file")) for row in status["plant"]["gateways"])
        yield _gauge("buscoupler_other_files", words, others)


def _alarms(status: Status) -> Iterator[Metric]:
    """Yield the alarms of each pattern or link for which they were raised once; "" for none."""
    rows = [((row["alarm"], row["of"], row["severity"]), row["stage"]) for row in status.get("alarms", ())]
    for name, words, stages in (
        ("buscoupler_alarm", "Whether an alarm is raised.", ("raised", "acknowledged")),
        ("buscoupler_alarm_unacknowledged", "Whether it is, and nobody acknowledged it.", ("raised",)),
    ):
        family = GaugeMetricFamily(name, words, labels=("alarm", "of", "severity"))
        found = dict[tuple[str, ...], float]()
        for labels, stage in rows:  # two links may be called the same
            found[labels] = max(found.get(labels, 0.0), float(stage in stages))
        yield _filled(family, found)


def _certificates(status: Status) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "buscoupler_certificate_end_time_seconds", "End of a certificate, since 1970.", labels=["file"]
    )
    for file, end_ns in status.get("certificates", {}).items():
        family.add_metric((file,), end_ns / 1e9)
    yield family


def _process(status: Status) -> Iterator[Metric]:
    about = {"version": status["product"], "topology": status["topology"], "gateway": status["gateway"]}
    yield InfoMetricFamily("buscoupler", "The process.", about)
    yield _gauge(
        "process_start_time_seconds", "Start of the process, since 1970.", status["started_ns"] / 1e9
    )
    memory = status["memory"]
    yield _gauge("buscoupler_held_bytes", "Bytes that wait for stream peers.", memory["held_bytes"])
    yield _gauge("buscoupler_held_limit_bytes", "The bound of buscoupler_held_bytes.", memory["limit_bytes"])
    yield _gauge("buscoupler_gateways_silent", "Gateways not seen from here.", len(status["silent"]))


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(name, words, value=value)


def _hubs(status: Status) -> Iterator[Metric]:
    """Yield the counters of hubs."""
    rows = list(_rows(status))
    for key, (name, words) in _COUNTERS.items():
        yield _filled(CounterMetricFamily(name, words, labels=_LINK), _summed(rows, key))
    for key, (name, words) in _GAUGES.items():
        yield _filled(GaugeMetricFamily(name, words, labels=_LINK), _summed(rows, key))
    for key, (name, words) in _REASONS.items():
        counts = [((*at, reason), {key: n}) for at, row in rows for reason, n in row[key].items()]
        yield _filled(CounterMetricFamily(name, words, labels=(*_LINK, "reason")), _summed(counts, key))
    cuts = GaugeMetricFamily(
        "buscoupler_pipes_cut", "Pipes that are cut, as they close a loop.", labels=["hub"]
    )
    yield _filled(
        cuts, _summed([((hub["name"],), {"cuts": len(hub["cuts"])}) for hub in status["hubs"]], "cuts")
    )


def _rows(status: Status) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield the row of each link with its labels: the names of hub and row, which no two links share."""
    for hub in status["hubs"]:
        for row in hub["links"]:
            yield (hub["name"], row["name"]), row


def _values(status: Status) -> Iterator[Metric]:
    """Yield the last values that are numbers of known quantities, and how many are left out."""
    words = "Last value of a pattern, in its unit, on a bus or from the devices of a side."
    found: dict[tuple[str, ...], float] = {
        (row["on"], row["pattern"], row.get("unit", "")): row["number"]
        for row in status["values"] if "number" in row
    }  # fmt: skip
    yield _filled(GaugeMetricFamily("buscoupler_value", words, labels=("on", "pattern", "unit")), found)
    words = "Patterns of devices that have no buscoupler_value, as there are too many."
    yield _gauge("buscoupler_values_left_out", words, unlisted(status))


def _summed(
    rows: Iterable[tuple[tuple[str, ...], Mapping[str, Any]]], key: str
) -> dict[tuple[str, ...], int]:
    found = dict[tuple[str, ...], int]()
    for labels, row in rows:
        found[labels] = found.get(labels, 0) + row.get(key, 0)
    return found


def _filled(family: Family, values: Mapping[tuple[str, ...], float]) -> Metric:
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _links(status: Status) -> Iterator[Metric]:
    """Yield the states of the links that are there now, with the labels of their counts."""
    rows = [(at, row) for at, row in _rows(status) if "state" in row]
    up = {at: float(carries(row["state"], row.get("condition", ""))) for at, row in rows}
    yield _filled(
        GaugeMetricFamily("buscoupler_link_up", "Whether a link is up, and not bus-off.", labels=_LINK), up
    )
    lost = CounterMetricFamily("buscoupler_link_losses", "Times that a link was lost.", labels=_LINK)
    yield _filled(lost, _summed(rows, "losses"))


def _kept(status: Status) -> Iterator[Metric]:
    """Yield what journals keep for each end, and whether it is connected."""
    ends = [((*at, end["for"]), end) for at, row in _rows(status) for end in row.get("kept", ())]
    for key, (name, words) in _KEPT.items():
        yield _filled(GaugeMetricFamily(name, words, labels=(*_LINK, "for")), _summed(ends, key))
    to_go = {at: end["to_go_s"] for at, end in ends if "to_go_s" in end}
    words = "Time until an end has all, as fast as in the last seconds; none while it does not get less."
    yield _filled(GaugeMetricFamily("buscoupler_kept_to_go_seconds", words, labels=(*_LINK, "for")), to_go)
    there = {at: float(end["state"] in ("synced", "delivered")) for at, end in ends}
    words = "Whether an end is connected, and acknowledges."
    yield _filled(GaugeMetricFamily("buscoupler_kept_connected", words, labels=(*_LINK, "for")), there)


def _failover(status: Status) -> Iterator[Metric]:
    """Yield the roles in failovers. The bridges of a group have different names, and one lease."""
    role = StateSetMetricFamily("buscoupler_role", "Role of this gateway in a failover.", labels=_ROLE)
    ready = GaugeMetricFamily("buscoupler_role_ready", "Whether it could forward.", labels=_ROLE)
    epoch = GaugeMetricFamily("buscoupler_lease_epoch", "Epoch of the lease that it knows.", labels=_ROLE)
    took = CounterMetricFamily("buscoupler_takeovers", "Times that it began to forward.", labels=_ROLE)
    calm = CounterMetricFamily(
        "buscoupler_takeovers_without_fault",
        "Those after one that was late or stopped, not dead.",
        labels=_ROLE,
    )
    lease = GaugeMetricFamily("buscoupler_lease_milliseconds", "Length of the lease it claims.", labels=_ROLE)
    for one in status["candidates"]:
        name = (one["bridge"], one["lease"])
        calm.add_metric(name, one.get("takeovers_without_fault", 0))
        lease.add_metric(name, one.get("lease_ms", 0))
        role.add_metric(name, {word: one["role"] == word for word in dict.fromkeys((*_ROLES, one["role"]))})
        ready.add_metric(name, float(one["ready"]))
        epoch.add_metric(name, one["epoch"])
        took.add_metric(name, one["takeovers"])
    yield from (role, ready, epoch, took, calm, lease)


def _services(status: Status) -> Iterator[Metric]:
    """Yield the counts of brokers and services. Some of them fall, so all are gauges."""
    counts, refused = dict[tuple[str, ...], float](), dict[tuple[str, ...], float]()
    for broker in status["brokers"]:
        counts |= {(broker["name"], name): count for name, count in broker["counts"].items()}
        refused |= {(broker["name"], reason): count for reason, count in broker["rejected"].items()}
    words = "A count of a broker or service, such as its connections (docs/status.md)."
    yield _filled(GaugeMetricFamily("buscoupler_service", words, labels=["service", "count"]), counts)
    words = "What a broker or service refused, by reason."
    yield _filled(
        CounterMetricFamily("buscoupler_service_refused", words, labels=["service", "reason"]), refused
    )


def _taps(status: Status) -> Iterator[Metric]:
    taps = [((tap["name"],), tap) for tap in status["taps"]]
    for key, words in (
        ("captured", "Messages that it took; `pattern` then leaves some out."),
        ("lost", "Messages for which it had no room, also such that `pattern` would leave out."),
    ):
        family = CounterMetricFamily(f"buscoupler_tap_{key}", words, labels=["tap"])
        yield _filled(family, _summed(taps, key))
    for key, words in (("waiting_bytes", "Bytes in its ring."), ("ring_bytes", "Size of its ring.")):
        yield _filled(GaugeMetricFamily(f"buscoupler_tap_{key}", words, labels=["tap"]), _summed(taps, key))


def _transit(status: Status) -> Iterator[Metric]:
    words = "Time from a link of a hub to another, of sampled batches (docs/status.md)."
    family = HistogramMetricFamily("buscoupler_transit_seconds", words, labels=["hub", "from", "to"])
    for one in status["transit"]:
        buckets, total = list[tuple[str, float]](), 0
        for bound, count in zip((*map(str, one["bounds_s"]), "+Inf"), one["counts"], strict=True):
            total += count
            buckets.append((bound, total))
        family.add_metric((one["hub"], one["one"], one["other"]), buckets, one["sum_s"])
    yield family
