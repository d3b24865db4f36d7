"""Links are chosen by part, number, medium or address, and their values are those of a status."""

from typing import Any, NamedTuple

import pytest

from appliance.alarms.links import LinkValues, by_part, meant
from appliance.status.rates import Rate
from appliance.status.rows import LinkRow
from bus.hub import Hub
from bus.ledger import Account
from tests.appliance.alarms.alarms_support import spec


class Named(NamedTuple):
    name: str
    url: str


def row(hub: str, name: str) -> LinkRow:
    link: Any = Named(name.split("/", 1)[-1], name.split("/", 1)[-1])
    return LinkRow(Hub(hub), name, link)


ROWS = [row("x", "0 bus/p"), row("x", "1 can/can:can0"), row("p", "tcp://127.0.0.1:5")]


@pytest.mark.parametrize(
    ("link", "names"),
    [
        ("x", ["0 bus/p", "1 can/can:can0"]), ("x/1", ["1 can/can:can0"]), ("x/can", ["1 can/can:can0"]),
        ("x/can:can0", ["1 can/can:can0"]), ("p/tcp://127.0.0.1:5", ["tcp://127.0.0.1:5"]), ("x/ca", []),
    ],
)  # fmt: skip
def test_a_link_is_chosen(link: str, names: list[str]) -> None:
    assert [one.name for one in meant(spec(link=link, missing_s=5), by_part(ROWS))] == names


def test_its_values_are_rates_queues_and_unintended_drops() -> None:
    account, values = Account(), LinkValues()
    key, accounts = ("x", "1 can"), {"x": {"1 can": account}}
    rates = {key: Rate(5.0, 7.0)}
    account.stats.queued = 3
    account.stats.drop("queue full", 10)
    values.look(rates, accounts, 10)
    assert [values.of(what, key) for what in ("in", "out", "queued", "dropped")] == [5.0, 7.0, 3, 0.0]
    account.stats.drop("queue full", 20)
    account.stats.drop("pattern", 50)  # intended
    values.look(rates, accounts, 10.5)  # too soon
    values.look(rates, accounts, 12)
    assert values.of("dropped", key) == 10.0
    account.stats.drop("queue full", 7)
    values.look(rates, accounts, 13)
    assert values.of("dropped", key) == 7.0
    assert values.of(None, key) is None
    assert values.of("in", ("y", "z")) is None


def test_an_alarm_looks_at_the_links_of_its_own_part_only() -> None:
    """A look of hundreds of alarms at hundreds of links held the loop for longer than a lease."""
    looked = list[str]()

    class Looked:
        def __init__(self, name: str) -> None:
            self.name = name

        @property
        def url(self) -> str:
            looked.append(self.name)
            return self.name

    links: list[Any] = [Looked(f"can:can{number}") for number in range(100)]
    parts = by_part(
        LinkRow(Hub(f"x{number}"), f"1 can/{link.name}", link) for number, link in enumerate(links)
    )
    chosen = [list(meant(spec(link=f"x{number}/can", missing_s=5), parts)) for number in range(100)]
    assert [len(rows) for rows in chosen] == [1] * 100
    assert len(looked) == 100
