"""Links are chosen by part, number, medium or address, and their values are those of a status."""

from types import SimpleNamespace
from typing import Any

import pytest

from appliance.alarms.links import LinkValues, meant
from appliance.status.rates import Rate
from appliance.status.rows import LinkRow
from bus.hub import Hub
from bus.ledger import Account
from tests.appliance.alarms.alarms_support import spec


def row(hub: str, name: str) -> LinkRow:
    link: Any = SimpleNamespace(name=name.split("/", 1)[-1], url=name.split("/", 1)[-1])
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
    assert [one.name for one in meant(spec(link=link, missing_s=5), ROWS)] == names


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
    assert values.of(None, key) is None
    assert values.of("in", ("y", "z")) is None
