"""The syndication broker over TCP, with clients of both generations."""

import logging

import pytest

pytest.importorskip("msgpack")
pytest.importorskip("lark")
pytest.importorskip("re2")

from tests.devices.syndication.tcp_clients import difference, home, publication_of, published, query_of
from tests.helpers.peers import until


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
        await producer.publish("a", {"Room": "410"}, 1)
        await subscriber.told(difference(), difference(["a"]), ["a", {"Room": "410"}, 1])
        producer.close()
        await subscriber.told(difference(gone=["a"]))
        again = await here.guest(tagged=True)
        await again.publish("a", None, 2)
        await subscriber.told(difference(["a"]), ["a", {}, 2])


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
    async with home() as here:
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


async def test_what_is_no_message_is_counted_by_reason_and_its_client_goes_on() -> None:
    async with home() as here:
        guest = await here.guest()
        await guest.say(b"\x91\x01" + b"\x93\x01\x80\x01" + b"\x93\xa1a\x91\x01\x01" + b"\x80")
        await guest.publish("a", {}, 1)
        await guest.subscribe("")
        await guest.told(difference(["a"]))
        assert here.server.stats.rejected == {"publication": 1, "id": 1, "metadata": 1, "difference": 1}


async def test_a_stream_without_framing_ends_its_client_only() -> None:
    async with home() as here:
        guest, wrong = await here.guest(), await here.guest()
        await guest.subscribe("")
        await guest.told(difference())
        await wrong.say(publication_of("a") + b"GET / HTTP/1.1\r\n")
        await until(lambda: wrong.gone)
        await guest.told(difference(["a"]), ["a", {}, None], difference(gone=["a"]))
        assert here.server.stats.rejected == {"framing": 1}
