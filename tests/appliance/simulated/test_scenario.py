"""A scenario: the same seed gives the same run, and what could not be sent is told."""

from contextlib import closing

from appliance.simulated.plant import SimulatedPlant
from appliance.simulated.scenario import Scenario
from appliance.simulated.stated import Deed, Traffic
from tests.appliance.simulated.simulated_support import text
from topologies.loading.loader import loads


def test_traffic_at_a_bus_whose_gateway_is_off_is_not_sent() -> None:
    with closing(SimulatedPlant(loads(text()))) as plant:
        scenario = Scenario(plant, [Traffic("hall", "motor", 10)], [Deed("fail", "gw-b", 1.0)], 2.0)
        scenario.run()
    (account,) = scenario.accounts
    assert account.count + account.refused == 20
    assert account.refused in (9, 10)
    assert "not sent: the gateway was off" in "\n".join(scenario.lines())
