"""Rows of a status beside those of links: addresses at which something is to listen."""

import errno
import socket
from asyncio import get_running_loop

from appliance.status.rows import waiting_rows
from bus.hub import Hub
from bus.transports.binding import Binding, SocketPlace
from tests.helpers.peers import until


async def test_an_address_has_a_row_while_it_is_looked_up_or_waits_and_if_it_came_later() -> None:
    absent = True

    def bind(_: SocketPlace) -> None:
        if absent:
            raise OSError(errno.EADDRNOTAVAIL, "not there")

    def binding(host: str) -> Binding[None]:
        return Binding(f"tcp://{host}:5", (socket.AF_INET, (host, 5)), bind, lambda _: None)

    hub, never, later, named = Hub(), binding("127.0.0.1"), binding("192.0.2.1"), binding("localhost")

    def shown() -> list[tuple[str, str]]:
        return [(row.name, row.link.state) for row in waiting_rows(hub, [never, later, named])]

    assert shown() == []
    try:
        later.open(get_running_loop())
        named.open(get_running_loop())
        assert shown() == [("listen tcp://192.0.2.1:5", "waiting"), ("listen tcp://localhost:5", "opening")]
        absent = False
        never.open(get_running_loop())
        await until(lambda: later.state == named.state == "up")
        assert shown() == [("listen tcp://192.0.2.1:5", "up")]
    finally:
        for one in (never, later, named):
            one.close()
