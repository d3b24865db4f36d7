"""The syndication broker over TCP, with clients of both generations."""

import logging
from functools import partial
from random import Random
from uuid import UUID

import pytest

pytest.importorskip("msgpack")
pytest.importorskip("lark")
pytest.importorskip("re2")

from bus.serving import objects
from devices.syndication import server
from devices.syndication.bounds import Bounds
from devices.syndication.query.grammar import parser
from devices.syndication.tcp import GONE
from devices.syndication.turns import Turns
from devices.syndication.wire.messages import REFUSED
from tests.devices.syndication.tcp_clients import difference, home, publication_of, published, query_of
from tests.helpers.clocks import wait_in_vain
from tests.helpers.peers import until

COSTLY = "".join(Random(1).choices("ab", k=4000))
"""RE2 makes a new state at each letter of it."""


@pytest.mark.parametrize("producing", [False, True])
@pytest.mark.parametrize("subscribing", [False, True])
async def test_clients_of_both_generations_meet(producing: bool, subscribing: bool) -> None:
    async with home() as here:
        subscriber, producer = await here.guest(subscribing), await here.guest(producing)
        await subscriber.subscribe('Room = "410"')
        await subscriber.told(difference())
        await producer.publish("a", {"Room": "410"}, 21.5)
        await subscriber.told(difference(["a"]), published("a", {"Room": "410"}, 21.5, subscribing))
        await producer.publish("a", {}, 22)
        await subscriber.told(published("a", {}, 22, subscribing))
        await producer.publish("a", {"Room": "12"}, 23)
        await subscriber.told(difference(gone=["a"]))


async def test_a_producer_is_gone_with_its_connection_and_what_it_said_holds_again() -> None:
    async with home() as here:
        subscriber, producer = await here.guest(), await here.guest()
        await subscriber.subscribe("has Room")
        await subscriber.told(difference())
        await producer.publish("a", {"Room": "410"}, 1)
        await subscriber.told(difference(["a"]), ["a", {"Room": "410"}, 1])
        producer.close()
        await subscriber.told(difference(gone=["a"]))
        again = await here.guest(tagged=True)
        await again.publish("a", None, 2)
        await subscriber.told(difference(["a"]), ["a", {}, 2])


@pytest.mark.parametrize("tagged", [False, True])
async def test_a_selection_is_told_values_and_no_publications(tagged: bool) -> None:
    async with home() as here:
        subscriber, producer = await here.guest(tagged), await here.guest()
        await producer.publish("a", {"Room": "410", "Thermostat": True}, 1)
        await producer.publish("b", {"Room": ["12", 13.0]}, 1)
        await here.until(lambda: here.server.stats.received == 2)
        await subscriber.subscribe("select distinct Room where has Thermostat")
        await subscriber.told(difference(["410"]))
        await producer.publish("b", {"Thermostat": True}, 2)
        await producer.publish("b", {"Room": "410"}, 3)
        await subscriber.told(difference(["12", 13]), difference(gone=["12", 13]))
        await subscriber.subscribe("has Thermostat")
        await subscriber.told(difference(["a", "b"], ["410"]))
        await producer.publish("b", None, 4)
        await subscriber.told(published("b", {}, 4, tagged))


async def test_the_grammar_is_made_before_the_first_query_comes() -> None:
    parser.cache_clear()
    async with home() as here:
        assert parser.cache_info().misses == 1
        subscriber = await here.guest()
        await subscriber.subscribe('Room = "410"')
        await subscriber.told(difference())
        assert parser.cache_info().misses == 1


async def test_a_broker_that_ends_does_not_say_that_its_clients_are_gone() -> None:
    async with home() as here:
        producer, subscriber = await here.guest(), await here.guest()
        await producer.publish("a", {}, 1)
        await here.until(lambda: here.server.stats.received == 1)
        await subscriber.subscribe("")
        await subscriber.told(difference(["a"]))
        here.service.close()
        await here.until(lambda: subscriber.gone)
        assert subscriber.said == []


async def test_what_one_read_brings_is_one_send_and_a_client_hears_itself() -> None:
    async with home() as here:
        both = await here.guest()
        await both.say(query_of("", False) + b"".join(publication_of("a", {}, n) for n in range(100)))
        await both.told(difference(), difference(["a"]), *(["a", {}, n] for n in range(100)))
        assert here.server.stats.received == 101
        assert here.server.stats.sent == 102


async def test_an_untagged_client_is_told_what_is_wrong_and_goes_on() -> None:
    async with home() as here:
        guest = await here.guest()
        await guest.say(query_of("", False) + query_of("Room = 410a", False) + b"\xa2\xff\xff")
        error = "character 8: expected a value (text in quotes, a number, true or false), but found '410a'"
        await guest.told(difference(), {"Error": error}, {"Error": "a query is a string in UTF-8"})
        await guest.publish("a", {}, 1)
        await guest.told(difference(["a"]), ["a", {}, 1])
        assert here.server.stats.rejected == {"query": 2}


async def test_a_tagged_client_with_a_wrong_query_is_logged_counted_and_disconnected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with home(heartbeat_s=0.05, idle_s=3600.0) as here:
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                guest = await here.guest(tagged=True)
                await guest.subscribe("Room =")
                await until(lambda: guest.gone)  # noqa: B023 (waits here)
        assert guest.said == []
        assert here.server.stats.rejected == {"query": 3}
        assert [record.getMessage() for record in caplog.records] == [
            "s: refused from 127.0.0.1: query: character 7: expected a value (text in quotes, a number, true "
            "or false), but found the end"
        ]


async def test_a_tagged_client_that_asks_the_same_wrong_query_for_ever_gets_a_second_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with home() as here:
        guest, other = await here.guest(tagged=True), await here.guest(tagged=True)
        wait_in_vain(monkeypatch)
        await guest.subscribe("Room =")
        await here.until(lambda: here.server.stats.received == 1)
        await other.subscribe("")
        await other.told(difference())
        assert here.server.stats.rejected == {"query": 1}
        assert not guest.gone


async def test_what_is_no_message_is_counted_by_reason_and_its_client_goes_on() -> None:
    async with home() as here:
        guest = await here.guest()
        await guest.say(b"\x91\x01" + b"\x93\x01\x80\x01" + b"\x93\xa1a\x91\x01\x01" + b"\x80")
        await guest.say(b"\x93\x01\x80\x01")  # each reason is said once
        await guest.publish("a", {}, 1)
        await guest.subscribe("")
        reasons = ("publication", "id", "metadata", "difference")
        errors = [{"Error": f"{reason}: {REFUSED[reason]}"} for reason in reasons]
        await guest.told(*errors, difference(["a"]))
        assert here.server.stats.rejected == {"publication": 1, "id": 2, "metadata": 1, "difference": 1}


async def test_a_tagged_producer_gets_no_answer_that_its_program_does_not_know() -> None:
    async with home() as here:
        guest = await here.guest(tagged=True)
        await guest.say(b"\x00\x93\x01\x80\x01")
        await guest.subscribe("")
        await guest.told(difference())
        assert here.server.stats.rejected == {"id": 1}


async def test_a_producer_may_say_its_uuid_in_16_bytes() -> None:
    async with home() as here:
        guest, named = await here.guest(), UUID("6ae35fb3-45c6-4d31-a7a6-1d6c1d0b9b0e")
        await guest.subscribe("")
        await guest.told(difference())
        for head in (b"\x93\xc4\x10", b"\x93\xb0"):  # a bin, and the raw string of older packers
            await guest.say(head + named.bytes + b"\x80\x05")
        await guest.told(difference([str(named)]), [str(named), {}, 5], [str(named), {}, 5])


async def test_what_a_bound_refuses_is_answered_too() -> None:
    async with home(Bounds(producers=1)) as here:
        guest = await here.guest()
        await guest.publish("a", {}, 1)
        await guest.publish("b", {}, 1)
        await until(lambda: bool(guest.said))
        assert guest.said == [{"Error": next(iter(here.server.stats.rejected))}]


async def test_a_stream_without_framing_ends_its_client_only() -> None:
    async with home() as here:
        guest, wrong = await here.guest(), await here.guest()
        await guest.subscribe("")
        await guest.told(difference())
        await wrong.say(publication_of("a") + b"GET / HTTP/1.1\r\n")
        await until(lambda: wrong.gone)
        await guest.told(difference(["a"]), ["a", {}, None], difference(gone=["a"]))
        assert here.server.stats.rejected == {"framing": 1}


async def test_a_costly_pattern_over_much_metadata_does_not_hold_others_up() -> None:
    async with home() as here:
        producer, subscriber, hostile = await here.guest(), await here.guest(), await here.guest()
        for number in range(60):
            await producer.publish(f"p{number}", {"Text": COSTLY})
        await subscriber.subscribe("has Room")
        await subscriber.told(difference())
        await producer.publish("a", {"Room": "1"}, 0)
        await subscriber.told(difference(["a"]), ["a", {"Room": "1"}, 0])
        await hostile.subscribe('Text like "a[ab]{100}c" or has Room')
        trips = 0
        while not hostile.said:
            trips += 1
            await producer.publish("a", {"Room": "1"}, trips)
            await subscriber.told(["a", {"Room": "1"}, trips])
        assert trips > 3  # some 30, of a few turns each
        assert hostile.said[0] == difference(["a"])


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn ends after one message, however fast the machine is."""
    monkeypatch.setattr(server, "Turns", partial(Turns, turn_s=0.0))


@pytest.mark.usefixtures("short_turns")
async def test_what_one_client_says_at_once_is_done_in_turns_and_in_order() -> None:
    async with home() as here:
        many, one = await here.guest(), await here.guest(tagged=True)
        said = [publication_of(f"p{n % 1000}", {"n": n}, n) for n in range(10_000)]
        await many.say(query_of("n = 9999", False) + b"".join(said))
        await until(lambda: here.server.waiting > 0, passes=True)
        await one.subscribe("n = 9999")
        await until(lambda: len(one.said) > 0)
        await until(lambda: len(many.said) == 3)
        assert many.said == [difference(), difference(["p999"]), ["p999", {"n": 9999}, 9999]]
        assert here.server.stats.received == 10_002


@pytest.fixture
def whole_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read takes all that has come, however many messages that is."""
    monkeypatch.setattr(objects, "MANY", 1 << 20)
    monkeypatch.setattr(objects, "_BEGIN_BYTES", 1 << 20)


@pytest.mark.usefixtures("whole_reads", "short_turns")
async def test_what_a_client_published_before_it_lost_its_framing_is_done_and_its_queries_are_not() -> None:
    async with home() as here:
        subscriber, guest = await here.guest(), await here.guest()
        await subscriber.subscribe("last = 1")
        await subscriber.told(difference())
        said = [publication_of(f"p{n}", {"n": n}, n) for n in range(100)]
        await guest.say(
            b"".join([*said, query_of("Room =", False), publication_of("a", {"last": 1}, 0), b"\x07"])
        )
        await until(lambda: guest.gone, passes=True)
        assert here.server.waiting == 1
        await subscriber.told(difference(["a"]), ["a", {"last": 1}, 0], difference(gone=["a"]))
        assert here.server.stats.rejected == {"framing": 1}
        assert here.server.stats.received == 103


@pytest.mark.usefixtures("whole_reads", "short_turns")
async def test_only_so_many_that_are_gone_are_still_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last read of each brings messages that wait for a turn when its connection ends."""
    monkeypatch.setattr(server, "LEAVING", 0)
    async with home() as here:
        guests = [await here.guest() for _ in range(2)]
        for guest in guests:
            said = (publication_of("a", {"n": n}) for n in range(30))
            await guest.say(b"".join(said) + b"\x07")
        await until(lambda: all(guest.gone for guest in guests))
        await until(lambda: not here.server.waiting)
        assert here.server.stats.rejected == {"framing": 2, GONE: 2 * 29}


async def test_nothing_more_is_read_from_a_client_before_what_it_said_is_done() -> None:
    async with home() as here:
        producer, guest = await here.guest(), await here.guest()
        await producer.say(b"".join(publication_of(f"p{n}", {"Text": COSTLY}) for n in range(30)))
        await until(lambda: here.server.counts["producers"] == 30)
        await guest.subscribe('Text like "a[ab]{100}c"')
        await until(lambda: here.server.waiting == here.server.counts["queries"] == 1, passes=True)
        await guest.publish("a")
        read = set[int]()

        def is_done() -> bool:
            if here.server.waiting:
                read.add(here.server.stats.received)
            return not here.server.waiting

        await until(is_done, passes=True)
        assert read == {31}
        await until(lambda: here.server.stats.received == 32)


async def test_a_client_whose_queries_are_all_wrong_has_not_greeted() -> None:
    async with home(connections=2) as here:
        good, wrong = await here.guest(), await here.guest()
        await wrong.subscribe("Room =")
        await until(lambda: len(wrong.said) == 1)
        await good.subscribe("has Room")
        await good.told(difference())
        other = await here.guest()  # it takes the place of that which said nothing that holds
        await other.subscribe("")
        await other.told(difference())
        await until(lambda: wrong.gone)
        assert not good.gone


async def test_a_query_that_is_not_done_yet_goes_with_its_client() -> None:
    async with home(connections=2) as here:
        producer, guest = await here.guest(), await here.guest()
        await producer.say(b"".join(publication_of(f"p{n}", {"Text": COSTLY}) for n in range(100)))
        await until(lambda: here.server.counts["producers"] == 100)
        await guest.subscribe('Text like "a[ab]{100}c"')
        await until(lambda: here.server.waiting == here.server.counts["queries"] == 1, passes=True)
        await here.guest()  # it takes the place of that which has no set yet
        await until(lambda: guest.gone)
        await until(lambda: here.server.counts["queries"] == here.server.waiting == 0)
        assert guest.said == []
