"""A plant in virtual time: messages cross, gateways fail, wires are cut, and wrong names are told."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from typing import Any, ClassVar, TypeVar

import pytest

from appliance.simulated.plant import SimulatedPlant
from bridges.simulate import SimulationError
from bus.errors import FrameError
from bus.transports.options import RETRY_MAX_S
from tests.appliance.simulated.simulated_support import spoken, text
from topologies.loading.loader import loads

T = TypeVar("T")


@pytest.fixture
def here() -> Iterator[SimulatedPlant]:
    with closing(SimulatedPlant(loads(text()))) as plant:
        yield plant


@pytest.mark.parametrize("end", [SimulatedPlant.fail, SimulatedPlant.stop])
def test_another_gateway_forwards_after_the_end_of_one_and_that_may_return(
    here: SimulatedPlant, end: Callable[[SimulatedPlant, str], None]
) -> None:
    assert here.active("motor") == ["gw-a"]
    end(here, "gw-a")
    here.wait(5)
    assert here.active("motor") == ["gw-b"]
    here.send("can0", "motor", b"1")
    here.expect("hall", "motor", b"1")
    here.restart("gw-a")
    here.wait(5)
    here.send("can0", "motor", b"2")
    assert here.expect("hall", "motor").data == b"2"
    here.expect_nothing("hall")


def test_a_gateway_with_a_bus_fails_and_its_bus_is_back_after_a_restart(here: SimulatedPlant) -> None:
    here.fail("gw-b")
    with pytest.raises(SimulationError, match="at hall: there is can0; does its gateway run"):
        here.send("hall", "motor")
    here.restart("gw-b")
    here.wait(5)
    here.send("hall", "motor", b"1")
    here.expect("can0", "motor", b"1")


def test_a_cut_wire_carries_nothing_and_a_mended_one_does(here: SimulatedPlant) -> None:
    here.cut("can0")
    here.send("can0", "motor", b"1")
    here.expect_nothing("hall")
    here.mend("can0")
    here.expect("hall", "motor", b"1")  # it waited in the controller


def test_a_bus_that_is_cut_off_is_reached_by_its_own_gateway_alone(here: SimulatedPlant) -> None:
    here.cut("hall", of="gw-b")  # which has the bus, and so dials nothing
    here.wait(5)
    assert here.active("motor") == ["gw-a"]
    here.cut("hall")
    here.wait(5)
    assert here.active("motor") == ["gw-b"]
    here.cut("can0", of="gw-b")
    here.mend("hall", of="gw-a")  # the cut is for all
    here.wait(5)
    assert here.active("motor") == ["gw-b"]  # nobody else is ready
    here.mend("hall")
    here.wait(RETRY_MAX_S + 2)
    assert here.active("motor") == ["gw-a"]
    here.send("can0", "motor", b"3")
    here.expect("hall", "motor", b"3")


def test_a_gateway_that_is_cut_off_from_its_broker_gives_way(here: SimulatedPlant) -> None:
    here.cut("main", of="gw-a")
    here.wait(5)
    assert here.active("motor") == ["gw-b"]
    here.mend("main")
    here.wait(5)
    here.send("can0", "motor", b"1")
    here.expect("hall", "motor", b"1")
    here.expect_nothing("hall", "motor")


def test_the_cut_end_of_one_gateway_lets_the_other_take_over(here: SimulatedPlant) -> None:
    here.cut("can0", of="gw-a")
    here.wait(5)
    assert here.active("motor") == ["gw-b"]


def test_a_restart_does_not_mend_what_was_cut(here: SimulatedPlant) -> None:
    here.cut("can0", of="gw-a")
    here.fail("gw-a")
    here.restart("gw-a")
    here.wait(5)
    assert here.active("motor") == ["gw-b"]
    here.mend("can0", of="gw-a")
    here.wait(60)
    here.cut("can0", of="gw-b")
    here.wait(5)
    assert here.active("motor") == ["gw-a"]


class NotingPlant(SimulatedPlant):
    """A plant that notes how long its calls on the loop may take."""

    noted: ClassVar[list[float]] = []

    def _let(self, work: Coroutine[Any, Any, T], takes_s: float = 0.0) -> T:
        self.noted.append(takes_s)
        return super()._let(work, takes_s)


def test_a_call_on_the_loop_may_take_as_long_as_is_waited() -> None:
    """In real time a call that takes a minute longer than that counts as hung."""
    with closing(NotingPlant(loads(text()))) as here:
        here.noted.clear()
        here.expect_nothing("hall", for_s=90)
        here.wait(30)
        assert here.noted == [pytest.approx(90), 30]


@pytest.mark.parametrize("pattern", ["car/1", 0x2000_0000, ""])
def test_what_is_no_identifier_is_refused_in_words(pattern: str | int) -> None:
    with closing(SimulatedPlant(loads(spoken()))) as here, pytest.raises(FrameError, match="no identifier"):
        here.send("can0", pattern, b"1")


def test_devices_that_speak_a_protocol_and_a_serial_line() -> None:
    with closing(SimulatedPlant(loads(spoken()))) as here:
        here.send("can0", 0x123, b"\xaa")
        assert here.expect("p", "car").data == b"\xaa"
        here.expect("/dev/ttyS0", "car")
        here.send("/dev/ttyS0", "car/0x124", b"\xbb")
        here.expect("p", "car", b"\xbb")
        assert here.expect("can0", 0x124).data == b"\xbb"


def test_what_is_expected_and_does_not_come_is_told_with_what_came(here: SimulatedPlant) -> None:
    here.send("can0", "motor/speed", b"7")
    with pytest.raises(AssertionError, match=r"hall: motor/stop did not come within 1 s .* b'7'"):
        here.expect("hall", "motor/stop")
    with pytest.raises(AssertionError, match="expected nothing"):
        here.expect_nothing("hall")


@pytest.mark.parametrize("verb", ["fail", "stop", "restart", "cut", "mend", "active", "heard_at"])
def test_a_name_that_is_not_in_the_file_is_told_with_those_that_are(here: SimulatedPlant, verb: str) -> None:
    calls: dict[str, Callable[[str], object]] = {
        "fail": here.fail, "stop": here.stop, "restart": here.restart, "cut": here.cut, "mend": here.mend,
        "active": here.active, "heard_at": here.expect,
    }  # fmt: skip
    with pytest.raises(SimulationError, match=r"nobody.*(gw-a, gw-b|can0|motor)"):
        calls[verb]("nobody")


def test_a_medium_that_is_not_simulated_is_told() -> None:
    other = text().replace(
        "can: {channel: can0, fd: true}", "multicast: {group: 239.1.1.1, port: 9, interface: lo}"
    )
    with pytest.raises(SimulationError, match=r"multicast 239.1.1.1:9 on lo has no simulated wire"):
        SimulatedPlant(loads(other))
