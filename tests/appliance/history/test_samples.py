"""What is sampled of a gateway: growth since the last sample, and no more links than a bound."""

from typing import Any

from appliance.history.rings import Key
from appliance.history.samples import LINKS, Sampler
from appliance.status.rates import Rate, RowKey
from bus.ledger import Account


def account(queued: int = 0, **dropped: int) -> Account:
    made = Account()
    made.stats.offered = queued + sum(dropped.values())
    for reason, count in dropped.items():
        made.stats.drop(reason.replace("_", " "), count)
    return made


def test_rates_queues_and_the_growth_of_drops_that_nobody_intended() -> None:
    sampler = Sampler()
    rates = {("shop", "a"): Rate(10.0, 20.0)}
    sampler.samples(rates, {"shop": {"a": account(0, queue_full=5, pattern=9)}}, [], [])
    found = sampler.samples(rates, {"shop": {"a": account(0, queue_full=7, pattern=99)}}, [], [])
    assert found[Key("in", "shop | a")] == 10
    assert found[Key("out", "shop | a")] == 20
    assert found[Key("dropped", "shop | a")] == 2
    assert found[Key("queued", "shop | a")] == account().stats.queued
    late = sampler.samples(rates, {"shop": {"a": account(0, queue_full=17)}}, [], [], span_s=5.0)
    assert late[Key("dropped", "shop | a")] == 2  # a second, as the other rates


def test_the_first_drops_of_a_link_are_all_counted() -> None:
    sampler, rates = Sampler(), {("shop", "a"): Rate(10.0, 20.0)}
    sampler.samples(rates, {"shop": {"a": account(0)}}, [], [])
    found = sampler.samples(rates, {"shop": {"a": account(0, queue_full=5)}}, [], [])
    assert found[Key("dropped", "shop | a")] == 5


def test_transit_is_the_mean_of_the_batches_since_the_last_sample() -> None:
    sampler, row = Sampler(), {"hub": "shop", "one": "a", "other": "b"}
    sampler.samples({}, {}, [row | {"sum_s": 1.0, "counts": [1, 1]}], [])
    key = Key("transit", "shop: a to b")
    later = [row | {"sum_s": 1.5, "counts": [2, 2]}]
    assert sampler.samples({}, {}, later, []) == {key: 250}
    assert sampler.samples({}, {}, later, []) == {}


def test_values_that_are_numbers_have_their_side_and_unit() -> None:
    rows: list[dict[str, Any]] = [
        {"on": "bridge m, can:can0", "pattern": "meter/power", "unit": "W", "number": 7.5},
        {"on": "bridge n", "pattern": "meter/power", "unit": "W", "number": 8.5},  # of another meter
        {"on": "bridge n", "pattern": "meter/power", "number": 9.5},
        {"on": "bridge m, can:can0", "pattern": "a", "data": "text"},
    ]
    assert Sampler().samples({}, {}, [], rows) == {
        Key("value", "bridge m, can:can0 | meter/power (W)"): 7.5,
        Key("value", "bridge n | meter/power (W)"): 8.5,
        Key("value", "bridge n | meter/power"): 9.5,
    }


def test_links_beyond_the_bound_are_counted_and_those_that_are_followed_stay() -> None:
    sampler = Sampler()
    rates: dict[RowKey, Rate] = {("shop", str(number)): Rate() for number in range(LINKS + 5)}
    first = sampler.samples(rates, {}, [], [])
    assert (len(first), sampler.left_out) == (2 * LINKS, 5)
    del rates["shop", "7"]
    second = sampler.samples(dict(reversed(rates.items())), {}, [], [])
    assert first.keys() - second.keys() == {Key("in", "shop | 7"), Key("out", "shop | 7")}
    assert sampler.left_out == 4
