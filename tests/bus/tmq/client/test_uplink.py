"""The connection to a broker: what hinders it for a moment does not end it."""

import errno
import os
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from bus.tmq import peer
from tests.bus.tmq.broker.broker_house import House, free_urls
from tests.helpers.peers import until


class Shortage:
    """Sockets for peers, of which the next `count` cannot be made."""

    def __init__(self, code: int) -> None:
        self.code, self.count = code, 0

    def __call__(self, *arguments: Any) -> socket.socket:
        if self.count:
            self.count -= 1
            raise OSError(self.code, os.strerror(self.code))
        return socket.socket(*arguments)


@pytest.fixture(params=sorted(peer.LOCAL), ids=errno.errorcode.__getitem__)
def shortage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Shortage:
    made = Shortage(request.param)
    monkeypatch.setattr(peer, "socket", SimpleNamespace(**{**vars(socket), "socket": made}))
    return made


async def test_a_trouble_of_our_own_ends_no_search_for_a_broker(house: House, shortage: Shortage) -> None:
    """At the first broker, after a loss, and where the client looks whether an earlier broker is back."""
    first_url, second = free_urls(1)[0], house.broker()
    shortage.count = 3
    client = await house.client(first_url, second)
    client.node.subscribe((1,))
    await until(lambda: client.broker == second.addresses[0], what="the second broker")
    shortage.count = 1
    first = house.broker(first_url)
    await until(lambda: client.broker == first.addresses[0], what="the first broker")
    shortage.count = 3
    first.close()
    await until(lambda: client.broker == second.addresses[0], what="the second broker again")
    assert not shortage.count
