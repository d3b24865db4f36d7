"""A scenario: the same seed gives the same run, and what could not be sent is told."""

from contextlib import closing

from appliance.simulated.plant import SimulatedPlant
from appliance.simulated.scenario import Scenario, Sent
from appliance.simulated.stated import Deed, Traffic
from tests.appliance.simulated.simulated_support import spoken, text
from topologies.loading.loader import loads


def test_traffic_at_a_bus_whose_gateway_is_off_is_not_sent() -> None:
    with closing(SimulatedPlant(loads(text()))) as plant:
        scenario = Scenario(plant, [Traffic("hall", "motor", 10)], [Deed("fail", "gw-b", 1.0)], 2.0)
        scenario.run()
    (account,) = scenario.accounts
    (refused,) = account.refused.values()
    assert account.count + refused == 20
    assert refused in (9, 10)
    assert "not sent: the gateway was off" in "\n".join(scenario.lines())


def test_what_a_wire_does_not_take_is_told_so() -> None:
    with closing(SimulatedPlant(loads(spoken()))) as plant:
        account = Sent(Traffic("can0", "1", 1000))
        for _ in range(1000):
            account.send(plant)
    assert list(account.refused) == ["the wire had no room"]
    assert account.count + account.refused.total() == 1000
