"""Each notice is given to an outlet once while it is on its way, and outlets follow the topology."""

import asyncio
from collections.abc import Callable

from appliance.alarms.notice import Notice
from appliance.alarms.outlets.outlet import Outlet, ThreadOutlet
from appliance.alarms.telling import Teller
from bus.hub import Hub
from tests.appliance.alarms.outlets.outlet_support import NOTICE
from topologies.model.alarms import OutletSpec, WebhookSpec

HOOK = WebhookSpec(webhook="http://h/x", states=("raised",))


class Slow(ThreadOutlet):
    """An outlet that keeps what it is offered."""

    def open(self, hub: Hub, loop: object) -> None:
        self.state = "up"


def test_what_is_on_its_way_is_not_given_again_and_what_is_dropped_is_through() -> None:
    through, made = list[tuple[str, bool]](), list[ThreadOutlet]()

    def make(name: str, spec: OutletSpec, done: Callable[[Notice, bool], None]) -> Outlet:
        made.append(Slow(name, spec.url, lambda notice: None, done))
        return made[-1]

    async def run() -> None:
        teller = Teller(make, lambda outlet, notice, told: through.append((outlet, told)))
        loop = asyncio.get_running_loop()
        teller.follow([("chat", HOOK)], loop)
        for _ in range(3):
            teller.tell("chat", NOTICE)
        teller.tell("chat", NOTICE._replace(state="cleared"))  # it does not tell of that
        teller.tell("other", NOTICE)
        assert made[0].stats.offered == 1
        teller.follow([("chat", HOOK)], loop)
        assert len(made) == 1
        teller.follow([("chat", WebhookSpec(webhook="http://h/y"))], loop)
        assert made[0].state == "closed"
        made[1].state = "closed"
        teller.tell("chat", NOTICE)
        assert through == [("chat", False)]
        assert teller.hub.accounts()["chat"].stats.dropped == {"closed": 2}
        teller.close()
        assert teller.rows == []

    asyncio.run(run())


def test_rows_are_in_the_order_of_the_file_after_a_change_too() -> None:
    def make(name: str, spec: OutletSpec, done: Callable[[Notice, bool], None]) -> Outlet:
        return Slow(name, spec.url, lambda notice: None, done)

    async def run() -> None:
        teller, loop = Teller(make, lambda outlet, notice, told: None), asyncio.get_running_loop()
        teller.follow([("one", HOOK), ("two", HOOK)], loop)
        teller.follow([("one", WebhookSpec(webhook="http://h/y")), ("two", HOOK)], loop)
        assert [row.name for row in teller.rows] == ["one", "two"]
        teller.close()

    asyncio.run(run())
