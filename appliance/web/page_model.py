"""The model of an open status page: bounded fields of a status, and the marks that changed. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Any, Final

from appliance.status.overlay import marks, shown_marks, sign_of, sign_of_role
from appliance.status.rows import FARS
from appliance.status.times import stamp, zone_s
from appliance.status.words import (
    counted,
    fault,
    filtered,
    kept,
    label,
    lost,
    role_word,
    short,
    state_word,
    title,
    unlisted,
)
from bus.reasons import is_intended
from bus.vacancy import NO_PEER
from topologies.picture.marks import Mark

ROWS: Final = 100
EVENTS: Final = 30
DROPS: Final = 100
NAMES: Final = 40  # silent gateways
_DRAWN: Final = {
    "boxes": ("gateway", "address"), "nodes": ("id", "name", "detail"),
    "edges": ("id", "trunk", "standby", "durable"),
}  # fmt: skip
"""The keys of what a picture shows, by kind: places follow from them."""
_ALARMS: Final = {"raised": 0, "acknowledged": 1, "cleared": 2}
Status = Mapping[str, Any]
Marks = Mapping[str, Mapping[str, Any]]
_NO_MARKS: Final[Marks] = {}
_Known = Mark | Mapping[str, Any]
"""A mark of this gateway's, or one that another gateway has said."""
_NOTHING: Final[Status] = {"received": 0, "sent": 0}


class PageModel:
    """The maker of events for all open pages. `first` makes that for a new page."""

    def __init__(self) -> None:
        self._last: tuple[dict[str, Any], Mapping[str, _Known]] = {}, {}

    @property
    def knows(self) -> bool:
        """Whether it has taken a status."""
        return bool(self._last[0])

    def take(self, status: Status, others: Marks = _NO_MARKS) -> dict[str, Any]:
        """Return the event of the next status for all pages: its fields, and the marks that changed.

        `others` are the marks that other gateways have said of their own things. A thread may do this.
        """
        before = self._last[1]
        now: dict[str, _Known] = {**marks(status), **others}
        changed = {name: mark for name, mark in now.items() if before.get(name) != mark}
        gone = {name: Mark("idle") for name in before if name not in now}
        fields = page_fields(status)
        self._last = fields, now
        return fields | {"marks": _shown(changed | gone)}

    def first(self) -> dict[str, Any]:
        """Return the event of the last status for a new page, with all marks."""
        fields, marks = self._last
        return fields | {"marks": _shown(marks)}


def _shown(found: Mapping[str, _Known]) -> dict[str, Any]:
    """Return marks as pages get them. Those of others are as they were said."""
    own = {name: mark for name, mark in found.items() if isinstance(mark, Mark)}
    return {**found, **shown_marks(own)}


def page_fields(status: Status) -> dict[str, Any]:
    """Return the fields that a page shows beside the picture, as texts ready to be shown."""
    health = status.get("health", {})
    crossing = {hub["part"]: list(_heartbeats(hub)) for hub in status["hubs"] if hub["part"]}
    rows = [(hub["name"], row) for hub in status["hubs"] for row in _told(hub)]
    drops, alarms = list(_drops(status)), list(_alarms(status))
    return {
        "time_ns": status["time_ns"], "started_ns": status["started_ns"],
        "zone_s": zone_s(status["time_ns"] / 1e9),
        "topology": status["topology"], "gateway": status["gateway"], "product": status["product"],
        "pid": status["pid"],
        "health": {key: health[key] for key in ("word", "line", "more") if key in health},
        "reasons": health.get("reasons", []),
        "plant": {key: status["plant"][key] for key in ("word", "line")} if "plant" in status else {},
        "drawn": drawn(status), "totals": _totals(status),
        "rows": [_row(*rows[place]) for place in _heaviest(rows)], "more_rows": max(0, len(rows) - ROWS),
        "drops": sorted(drops, key=lambda row: row["filtered"])[:DROPS],
        "more_drops": max(0, len(drops) - DROPS),
        "roles": list(_roles(status)),
        "alarms": alarms[:ROWS], "more_alarms": max(0, len(alarms) - ROWS),
        "services": [_service(service, crossing.get(service["part"], ())) for service in status["brokers"]],
        "taps": [_tap(tap) for tap in status["taps"]], "values": status["values"],
        "more_values": unlisted(status),
        "events": [_event(event) for event in reversed(status["events"][-EVENTS:])],
        "silent": dict(list(status["silent"].items())[:NAMES]),
        "more_silent": max(0, len(status["silent"]) - NAMES),
    }  # fmt: skip


def drawn(status: Status) -> str:
    """Return a text that differs when the picture does."""
    drawing = status.get("drawing")
    if not drawing:
        return ""
    said = tuple(
        tuple(one.get(word) for word in words) for key, words in _DRAWN.items() for one in drawing[key]
    )
    return str(hash(said))


def _totals(status: Status) -> dict[str, str]:
    """Return the sums. What nobody dialled for is in the rows only: at a listener that is no fault.

    What brokers here sent and dropped is in their rows only, too: it is no traffic of the plant.
    """
    sums, memory = status["sums"], status["memory"]
    own = [sums[far] for far in FARS if far in sums and far != "broker"]
    outside, plant = (sums.get(far, _NOTHING) for far in ("outside", "plant"))
    return {
        "in": _rate(outside, "received"), "out": _rate(outside, "sent"),
        "plant_in": _rate(plant, "received"), "plant_out": _rate(plant, "sent"),
        "queued": str(sum(one["queued"] for one in own)),
        "dropped": str(sum(lost(one["dropped"]) - one["dropped"].get(NO_PEER, 0) for one in own)),
        "filtered": str(sum(filtered(one) for one in own)),
        "memory": f"{memory['held_bytes'] / 1e6:.1f} MB",
    }  # fmt: skip


def _rate(counts: Mapping[str, Any], what: str) -> str:
    """Return what crosses each second; what has crossed, where no rates are known."""
    rates = counts.get("rates")
    return f"{short(rates[f'{what}_per_s'])}/s" if rates else str(counts[what])


def _told(hub: Status) -> list[Status]:
    """Return the rows of a hub that are listed. A broker's are told with its counts."""
    return [row for row in hub["links"] if row.get("far") != "broker"]


def _heaviest(rows: Sequence[tuple[str, Status]]) -> list[int]:
    """Return the places of the rows that are shown, in order: of those with most trouble or traffic."""
    weights = [(sign_of(row) != "ok", sum(_crossing(row)), row["received"] + row["sent"]) for _, row in rows]
    return sorted(nlargest(ROWS, range(len(rows)), key=weights.__getitem__))


def _crossing(row: Status) -> tuple[float, float]:
    """Return the rates of what comes by a link and of what goes; 0 where none are known."""
    rates = row.get("rates", _NOTHING)
    return rates.get("received_per_s", 0.0), rates.get("sent_per_s", 0.0)


def _row(hub: str, row: Status) -> dict[str, Any]:
    crossing = [f"{short(rate)}/s" for rate in _crossing(row)]
    return {
        "hub": hub, "link": label(row), "state": state_word(row), "sign": sign_of(row),
        "fault": "; ".join(filter(None, (fault(row), *kept(row)))),
        "peers": row["live"], "in": crossing[0], "out": crossing[1],
        "queued": row["queued"], "dropped": lost(row["dropped"]), "filtered": filtered(row),
    }  # fmt: skip


def _drops(status: Status) -> Iterator[dict[str, Any]]:
    for hub in status["hubs"]:
        for row in _told(hub):
            for how in ("dropped", "rejected"):
                for reason, count in row[how].items():
                    yield {
                        "link": f"{hub['name']} | {label(row)}",
                        "how": how,
                        "reason": reason,
                        "count": count,
                        "filtered": is_intended(reason),
                    }


def _roles(status: Status) -> Iterator[dict[str, Any]]:
    for one in status["candidates"]:
        nobody = "all" if one["role"] == "parallel" else "nobody"
        yield {
            "bridge": one["bridge"], "role": role_word(one), "sign": sign_of_role(one),
            "holder": one["holder"] or nobody, "epoch": one["epoch"], "takeovers": one["takeovers"],
            "cause": one["cause"],
        }  # fmt: skip


def _alarms(status: Status) -> Iterator[dict[str, Any]]:
    """Yield the alarms: those that are raised first."""
    rows = sorted(status.get("alarms", ()), key=lambda row: _ALARMS.get(row["stage"], len(_ALARMS)))
    for row in rows:
        since_ms = max(0, status["time_ns"] - row["since_ns"]) // 1_000_000 if row["since_ns"] else None
        keys = ("alarm", "of", "stage", "severity", "text", "cause", "number", "by")
        told = [*row["told"], *(f"not {name}: it gave up" for name in row.get("failed", ()))]
        yield {key: row[key] for key in keys} | {"since_ms": since_ms, "told": ", ".join(told)}


def _heartbeats(hub: Status) -> Iterator[str]:
    """Yield what a broker and its peers say to each other: claims and heartbeats, which are no traffic."""
    for row in hub["links"]:
        if row.get("far") == "broker" and "rates" in row:
            yield f"from {label(row)} {_rate(row, 'received')}, to {label(row)} {_rate(row, 'sent')}"


def _service(service: Status, crossing: Sequence[str]) -> dict[str, str]:
    counts = counted({name: count for name, count in service["counts"].items() if count})
    return {
        "name": title(service), "at": ", ".join(service["urls"]),
        "counts": "; ".join(filter(None, (counts, *crossing))), "refused": counted(service["rejected"]),
    }  # fmt: skip


def _tap(tap: Status) -> dict[str, Any]:
    fill = 100 * tap["waiting_bytes"] / max(1, tap["ring_bytes"])
    return {key: tap[key] for key in ("name", "state", "captured", "lost", "written", "files")} | {
        "fault": fault(tap), "fill": f"{fill:.0f} %",
    }  # fmt: skip


def _event(event: Status) -> dict[str, Any]:
    time_ms = event["time_ns"] // 1_000_000
    words = event["cause"] + (f" ({counted(event['counts'])})" if event["counts"] else "")
    return {
        "time": stamp(time_ms / 1000),
        "time_ms": time_ms,
        "kind": event["kind"],
        "source": event["source"],
        "cause": words,
    }
