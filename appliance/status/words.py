"""The words for a row of a status that `top`, the status page and pictures share. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from appliance.status.conditions import carries, judged
from bridges.durable.settings import ACKNOWLEDGES
from bus.advice import advised
from bus.reasons import is_intended
from bus.report import READINGS

Row = Mapping[str, Any]
TROUBLE_MS = 3000
"""A link may be down for so long before that is trouble."""
TWINS: Final = "stop one, or give it a name of its own"
"""The advice where two gateways have one name."""
HOLDS: Final = ("active", "orphan")
"""Roles of a gateway that forwards by a lease: an orphan goes on when all brokers have died."""
_NAMED = "", "broker", "page", "values", READINGS
"""Kinds of services whose names say what they are; a service of an older gateway has none."""


def label(row: Row) -> str:
    """Return what people call the link of a row. A row of an older gateway has its name only."""
    return str(row.get("label", row["name"]))


def state_word(row: Row) -> str:
    """Return the state of a row's link in one word, that of its medium if it has one; "" without a link."""
    condition = str(row.get("condition", ""))
    return str(row.get("state", "")) if condition in ("", "unknown") else judged(condition).shown


def fault(row: Row) -> str:
    """Return why the link of a row is not up and what to do, or what its condition means; "" if it is well,
    or if that is not known."""
    if row.get("state") == "up":
        return judged(str(row.get("condition", ""))).why
    return advised(str(row.get("fault", ""))) or ("nothing answers" if is_in_trouble(row) else "")


def lost(counts: Mapping[str, int]) -> int:
    """Return how many dropped messages nobody asked to drop."""
    return sum(count for reason, count in counts.items() if not is_intended(reason))


def filtered(row: Row) -> int:
    """Return how many messages of a row, or of the totals, policies kept out, or were there another way."""
    both = (*row["dropped"].items(), *row["rejected"].items())
    return sum(count for reason, count in both if is_intended(reason))


def is_in_trouble(row: Row) -> bool:
    """Tell whether a link has not been up for a while; False if its process does not say for how long."""
    return int(row.get("down_ms", 0)) >= TROUBLE_MS


def title(service: Row) -> str:
    """Return the name of a service; that of a device with its kind in front."""
    kind, name = service["kind"], service["name"]
    return str(name if kind in _NAMED or kind == name else f"{kind} {name}")


def counted(counts: Mapping[str, int]) -> str:
    """Return counts by name as text: `connections 3, accepted 7`."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def worded(value: Row) -> str:
    """Return a value with its unit, if it has one."""
    unit = value.get("unit", "")
    return f"{value['data']} {unit}" if unit else str(value["data"])


def unlisted(status: Row) -> int:
    """Return how many patterns of devices have no value in a status, as there are too many."""
    beyond = [one["counts"].get("left_out", 0) for one in status["brokers"] if one.get("kind") == READINGS]
    return int(sum(beyond) + status.get("more_values", 0))


def role_word(role: Row) -> str:
    """Return the role of a gateway in a failover group, and what is to be known of it."""
    if not role["ready"]:
        return f"{role['role']}, not ready"
    return f"{role['role']}, settling" if role.get("settling") else str(role["role"])


def troubles(status: Row) -> Iterator[str]:
    """Yield a line for each reason why a gateway is not ready: none if it is.

    It is ready if all its links to media and other buses are up, and it can take part in each failover.
    A standby is ready too: readiness says nothing about who forwards.
    """
    for part in status["parts"]:
        if part["state"] and not carries(part["state"], part.get("condition", "")):
            yield ": ".join(filter(None, (part["id"], state_word(part), fault(part))))
    for role in status["candidates"]:
        if not role["ready"]:
            yield f"bridge {role['bridge']}: not ready: {role['cause']}"


_ENDS: Mapping[str, str] = {**ACKNOWLEDGES, "plain": "says no hello, acknowledges nothing"}


def kept(row: Row) -> list[str]:
    """Return what a journal keeps for each end, a line each; none for other links."""
    return [
        f"for {end['for']} ({_ENDS.get(end['state'], end['state'])}): {waits(end)}"
        for end in row.get("kept", ())
    ]


def waits(end: Row) -> str:
    """Return what waits in a journal for an end: messages, bytes, age of the oldest, and time to go."""
    if not end["messages"]:
        return "nothing waits"
    words = [f"{end['messages']:,} messages, {end['bytes'] / 1e6:.1f} MB"]
    words += [f"the oldest {span(end['oldest_ms'] / 1000)} old"] if "oldest_ms" in end else []
    words += [f"{span(end['to_go_s'])} to go"] if "to_go_s" in end else []
    return ", ".join(words)


def span(seconds: float) -> str:
    """Return a time in its largest unit."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def short(number: float) -> str:
    """Return a rate in at most five characters."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}" if number < 999 * size else f"{number / size:.0f}{unit}"
    return f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
