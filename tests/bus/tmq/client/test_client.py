"""The client on asyncio: what it has sent leaves before it closes."""

from contextlib import closing

import pytest

from bus.tmq import Client
from bus.tmq.client import client
from bus.tmq.wire import ADD, address_frames
from tests.bus.tmq.broker.broker_house import House
from tests.helpers.peers import until
from tests.helpers.tmq import StarvedClient


@pytest.mark.parametrize("size", [1, 2000])
async def test_what_was_sent_leaves_before_a_client_closes(house: House, size: int) -> None:
    """All but the first message wait for the subscriber's greeting; large ones then fill its socket."""
    broker = house.broker()
    sub = await house.client(broker)
    await sub.subscribe("x")
    async with Client([broker.urls[0]]) as pub:
        for number in range(200):
            assert await pub.publish("x", b"%04d" % number + bytes(size))
    assert (pub.stats.sent, pub.stats.dropped, pub.stats.balance()) == (200, {}, 0)
    await until(lambda: sub.inbox.offered == 200, what="the messages")


async def test_a_subscriber_that_takes_nothing_holds_no_client_up_for_long(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LINGER_S", 0.05)
    broker = house.broker()
    with closing(StarvedClient()) as starved:
        async with Client([broker.urls[0]]) as pub:
            await pub.publish("x")
            link, tokens = pub.node.uplink.connection, client.pattern_of("x")
            assert link is not None
            pub.node.on_frames(link, address_frames(ADD, tokens, [starved.address]))
            pub.send(tokens, b"1")
    assert (pub.stats.sent, pub.stats.dropped, pub.stats.balance()) == (0, {"closed": 1}, 0)
