"""Rates of links: over the time since the last sample, which is at least a second ago."""

from appliance.status.rates import Rate, Rates, growth
from bus.ledger import Account, Stats


def accounts(count: int) -> dict[str, dict[str, Account]]:
    stats = Stats(received=count, sent=2 * count, received_bytes=3 * count, sent_bytes=4 * count)
    return {"bus p": {"tcp": Account(stats)}}


def test_a_link_has_no_rate_before_the_second_sample() -> None:
    rates = Rates()
    assert rates.now == {}
    rates.sample(accounts(1000), 500.0)
    assert rates.now == {("bus p", "tcp"): Rate(0.0, 0.0, 0.0, 0.0)}


def test_a_link_by_which_nothing_went_has_rates_of_zero() -> None:
    rates = Rates()
    for now_s in (500.0, 501.0):
        rates.sample(accounts(1000), now_s)
    assert rates.now == {("bus p", "tcp"): Rate(0.0, 0.0, 0.0, 0.0)}


def test_rates_are_over_the_time_since_the_last_sample_that_counted() -> None:
    rates, place = Rates(), ("bus p", "tcp")
    rates.sample(accounts(1000), 500.0)
    rates.sample(accounts(1010), 500.999)  # too soon
    assert rates.now[place] == Rate()
    rates.sample(accounts(1030), 501.0)
    assert rates.now[place] == Rate(30.0, 60.0, 90.0, 120.0)
    rates.sample(accounts(1031), 504.0)
    assert rates.now[place] == Rate(0.33, 0.67, 1.0, 1.33)


def test_a_link_that_began_anew_counts_from_nothing() -> None:
    rates = Rates()
    rates.sample(accounts(1000), 500.0)
    rates.sample(accounts(10), 502.0)
    assert rates.now["bus p", "tcp"] == Rate(5.0, 10.0, 15.0, 20.0)


def test_a_link_that_has_gone_has_none() -> None:
    rates = Rates()
    rates.sample(accounts(1000), 500.0)
    rates.sample({"bus p": {}}, 502.0)
    assert rates.now == {}


def test_a_total_grows_from_what_it_was_or_from_nothing_if_it_fell() -> None:
    assert [growth(5, new) for new in (5, 8, 3)] == [0, 3, 3]
