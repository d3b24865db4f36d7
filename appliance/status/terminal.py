"""The text of `top`, made from statuses. Pure.

On a terminal the text has `width` columns, and long names are shortened in the middle. Without a width,
nothing is cut.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Literal

from appliance.status.health import WORDS
from appliance.status.ledger import Parted, reasons
from appliance.status.overlay import sign_of_word
from appliance.status.rates import growth
from appliance.status.shape import Status
from appliance.status.times import stamp
from appliance.status.words import (
    counted,
    fault,
    kept,
    label,
    lost,
    role_word,
    state_word,
    title,
    unlisted,
    worded,
)
from bus.text import amount, plain_lines
from topologies.picture.marks import SIGNS

Order = Literal["name", "from", "to", "queued", "dropped"]
"""The order of links in a page: as in the file, or those with the most first."""
EVENTS = 8
VALUES = 20
_GATEWAYS = 24  # of a plant; of more, those that are well are counted
_NAME_MIN = 24
_COUNTS_COLUMNS = 46  # of a row beside its name
_NOTHING: Mapping[str, Any] = {"received": 0, "sent": 0}


def pages(
    now: Sequence[Status],
    before: Mapping[str, Status],
    silent: Sequence[str],
    width: int | None,
    order: Order = "name",
) -> str:
    """Return the text for all processes, after a line for each of the `silent` gateways.

    `before` has earlier statuses by `key_of`: with one, a page shows rates, else totals since the start.
    """
    missing = [line for text in silent for line in fold(text, width)]
    plants = {status["topology"]: status for status in reversed(now) if "plant" in status}
    whole = [line for status in plants.values() for text in plant(status) for line in fold(text, width)]
    shown = [page(status, _earlier(status, before), width, order) for status in now]
    return printable("\n".join([*missing, *whole, *shown]))


def _earlier(status: Status, before: Mapping[str, Status]) -> Status | None:
    """Return the status before this one; none if the clock of its process stood still or went back."""
    found = before.get(key_of(status))
    return found if found and found["time_ns"] < status["time_ns"] else None


def key_of(status: Status) -> str:
    """Return the identity of a process, which all its statuses share."""
    return f"{status['pid']} {status['started_ns']}"


def printable(text: str) -> str:
    """Return `text` without control characters: names come from peers, and must not reach a terminal so."""
    return plain_lines(text)


def head(now: Sequence[Status], silent: Sequence[str]) -> str:
    """Return how many processes answer, how well their gateways are, and how many are silent, in a line."""
    words = Counter(status["health"]["word"] for status in now if "health" in status)
    told = [f"{_sign(word)} {words[word]} {word}" for word in reversed(WORDS) if words[word]]
    told += [f"{len(silent)} silent"] if silent else []
    processes = amount(len(now), "process")
    return printable(f"buscoupler top: {', '.join([processes, *told])}")


def page(status: Status, before: Status | None, width: int | None, order: Order = "name") -> str:
    """Return the text for one process."""
    sections = (
        heading(status),
        alarms(status),
        links(status, before, width, order),
        cuts(status),
        roles(status),
        services(status),
        values(status),
        events(status),
    )
    lines = [line for section in sections for line in section]
    return "\n".join(part for line in lines for part in fold(line, width))


def fold(line: str, width: int | None) -> list[str]:
    """Return a line as lines of at most `width` columns, indented below the first."""
    if width is None or len(line) <= width:
        return [line]
    indent = len(line) - len(line.lstrip())
    return wrap(line, width, subsequent_indent=" " * (indent + 4), drop_whitespace=True) or [line]


def shorten(name: str, columns: int) -> str:
    """Return a name in at most `columns`, with dots instead of its middle."""
    if len(name) <= columns:
        return name
    head = (columns - 1) // 2
    return f"{name[:head]}…{name[len(name) - (columns - 1 - head) :]}"


def heading(status: Status) -> Iterator[str]:
    """Yield whether a gateway is well, and whose status it is: topology, gateway, process, user, address."""
    gateway = f" on {status['gateway']}" if status["gateway"] else ""
    up_s = (status["time_ns"] - status["started_ns"]) // 1_000_000_000
    uptime = f"{up_s // 3600}:{up_s // 60 % 60:02}:{up_s % 60:02}"
    user = f", user {status['user']}" if "user" in status else ""
    at = f" at {status['at']}" if "at" in status else ""
    process = f"{status['program']}, process {status['pid']}{user}{at}"
    health = status.get("health")
    yield from [f"{_sign(health['word'])} {health['line']}"] if health else []
    yield f"{status['topology']}{gateway}: {process}, up {uptime}"


def alarms(status: Status) -> Iterator[str]:
    """Yield a line for each alarm that is or was raised."""
    for row in status.get("alarms", ()):
        if row["stage"] != "normal":
            by = f" by {row['by']}" if row["stage"] == "acknowledged" else ""
            text = ": ".join(filter(None, (row["of"], row["text"], row["cause"])))
            yield f"  alarm {row['alarm']} {row['stage']}{by} {stamp(row['since_ns'] / 1e9)}: {text}"


def _sign(word: str) -> str:
    """Return the sign of a verdict."""
    return SIGNS[sign_of_word(word)]


def plant(status: Status) -> Iterator[str]:
    """Yield whether a plant is well, and a line for each of its gateways, as one of them sees it."""
    found = status["plant"]
    yield f"{_sign(found['word'])} plant {status['topology']}: {found['line']}"
    shown, well = _worst(found["gateways"])
    for row in shown:
        yield f"  {row['name']} ({row['address']}): {_of_gateway(row)}"
    if well:
        yield f"  and {amount(well, 'gateway')} in good health"
    if found["more_gateways"]:
        yield f"  and {found['more_gateways']} more gateways"


def _worst(rows: Sequence[Mapping[str, Any]]) -> tuple[Sequence[Mapping[str, Any]], int]:
    """Return the gateways to list: of many, those that are not well; and how many others there are."""
    if len(rows) <= _GATEWAYS:
        return rows, 0
    ill = [row for row in rows if row["state"] != "answers" or row["word"] != "ok" or row["other_file"]]
    return ill, len(rows) - len(ill)


def _of_gateway(row: Mapping[str, Any]) -> str:
    if row["state"] != "answers":
        return f"{row['state']}: {row['line']}"
    differs = " (another file)" if row.get("other_file") else ""
    file, version = row.get("file", "")[:8] or "-", row.get("product", "")
    return f"{row.get('line') or row['word'] or 'answers'}, version {version}, file {file}{differs}"


def links(status: Status, before: Status | None, width: int | None, order: Order = "name") -> Iterator[str]:
    """Yield a line for each link of each hub, and below it its drops and fault; the most first by `order`."""
    rows = list(_rows(status))
    if not rows:
        return
    old = {(hub, row["name"]): row for hub, row in _rows(before)} if before else {}
    span_s = (status["time_ns"] - before["time_ns"]) / 1e9 if before else 1.0
    unit = "/s" if before else ""
    rows.sort(key=lambda one: -_measure(order, one[1], old.get((one[0], one[1]["name"]), _NOTHING)))
    room = max(len(_label(*row)) for row in rows)
    room = room if width is None else min(room, max(_NAME_MIN, width - _COUNTS_COLUMNS))
    heads = f"{f'from{unit}':>9} {f'to{unit}':>9}"
    yield f"  {'link':{room}} {'state':8} {'peers':>5} {heads} {'queued':>7}"
    for hub, row in rows:
        earlier = old.get((hub, row["name"]), _NOTHING)
        rates = [growth(earlier[f], row[f]) / span_s for f in ("received", "sent")]
        name = shorten(_label(hub, row), room)
        numbers = f"{row['live']:5} {rates[0]:9.0f} {rates[1]:9.0f} {row['queued']:7}"
        yield f"  {name:{room}} {state_word(row):8} {numbers}"
        yield from _troubles(row)


def _measure(order: Order, row: Mapping[str, Any], earlier: Mapping[str, Any]) -> float:
    if order == "from":
        return float(growth(earlier["received"], row["received"]))
    if order == "to":
        return float(growth(earlier["sent"], row["sent"]))
    if order == "dropped":
        return float(lost(row["dropped"]))
    return float(row["queued"]) if order == "queued" else 0.0


def _rows(status: Status) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the row of each link, with the name of its hub."""
    for hub in status["hubs"]:
        for row in hub["links"]:
            yield hub["name"], row


def _label(hub: str, row: Mapping[str, Any]) -> str:
    return f"{hub} | {label(row)}" if hub else label(row)


def _troubles(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the drops, the imbalance and the fault of a row, for which it has no column."""
    told = Parted(row["dropped"], row["rejected"])
    yield from [f"      dropped {told.dropped}"] if told.dropped else []
    yield from [f"      rejected {told.rejected}"] if told.rejected else []
    yield from [f"      filtered: {told.filtered}"] if told.filtered else []
    if row.get("noise_bytes"):
        yield f"      {row['noise_bytes']:,} bytes of noise"
    if row["balance"]:
        yield f"      the ledger does NOT balance: {row['balance']} messages are unaccounted for"
    if fault(row):
        yield f"      {fault(row)}"
    yield from (f"      {line}" for line in kept(row))


def cuts(status: Status) -> Iterator[str]:
    """Yield a line for each pipe that is cut now."""
    for hub in status["hubs"]:
        for name in hub["cuts"]:
            yield f"  disconnected because it closes a loop: {name}"


def roles(status: Status) -> Iterator[str]:
    """Yield the role of this gateway in each of its failover groups."""
    for one in status["candidates"]:
        holder = one["holder"] or "nobody"
        role = role_word(one)
        counts = f"epoch {one['epoch']}, holder {holder}, takeovers {one['takeovers']}"
        if one["role"] == "parallel":
            yield f"  bridge {one['bridge']}: {role}: {one['cause']}"
            continue
        if calm := one.get("takeovers_without_fault", 0):
            counts += f" ({calm} without a fault)"
        if one.get("late_ms") and "lease_ms" in one:
            counts += f", lease {one['lease_ms']} ms as this machine is late"
        lease = one.get("lease", one["bridge"])
        group = f" of group {lease}" if lease != one["bridge"] else ""
        yield f"  bridge {one['bridge']}{group}: {role}, {counts}: {one['cause']}"


def services(status: Status) -> Iterator[str]:
    """Yield the counts of each broker and other service, and each lease with its candidates."""
    for service in status["brokers"]:
        refused = f"; refused: {reasons(service['rejected'])}" if service["rejected"] else ""
        where = f" at {', '.join(service['urls'])}" if service["urls"] else ""
        yield f"  {': '.join(filter(None, (title(service) + where, counted(service['counts']))))}{refused}"
        for lease in service["leases"]:
            holder = lease["holder"] or "nobody"
            yield f"    lease of {lease['bridge']}: holder {holder}, epoch {lease['epoch']}"
            for candidate in lease["candidates"]:
                yield f"      {candidate['name']}: {_claim(candidate)}"


def _claim(candidate: Mapping[str, Any]) -> str:
    ready = "forwards" if candidate["holding"] else "ready" if candidate["ready"] else "not ready"
    return f"{ready}, order {candidate['order']}, heard {candidate['silent_ms']} ms ago"


def values(status: Status) -> Iterator[str]:
    """Yield a line for each of the first values of devices that are known, with its unit and age."""
    known = [row for row in status["values"] if "unit" in row]
    for row in known[:VALUES]:
        yield f"  {row['pattern']} {worded(row)}, {row['age_ms'] / 1000:.1f} s ago ({row['on']})"
    if more := max(0, len(known) - VALUES) + unlisted(status):
        yield f"  and {more} more values"


def events(status: Status) -> Iterator[str]:
    """Yield the latest events."""
    for event in status["events"][-EVENTS:]:
        counts = f" ({counted(event['counts'])})" if event["counts"] else ""
        text = f"{event['kind']}: {event['source']}: {event['cause']}{counts}"
        yield f"  {stamp(event['time_ns'] / 1e9)} {text}"
