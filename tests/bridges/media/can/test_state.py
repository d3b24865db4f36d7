import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.can.state import (
    BUS_OFF,
    CONTROLLER,
    COUNTERS,
    NO_ACK,
    PROTOCOL,
    RESTARTED,
    TX_TIMEOUT,
    BusState,
)

STATES = {"unknown", "error-active", "error-warning", "error-passive", "bus-off"}


def crtl(status: int, tx: int = 0, rx: int = 0) -> bytes:
    return bytes((0, status, 0, 0, 0, 0, tx, rx))


def test_a_controller_that_fails_and_recovers() -> None:
    """The error frames of an SJA1000 with restart-ms whose cable is cut and repaired."""
    bus = BusState()
    story = [
        (CONTROLLER | COUNTERS, crtl(0x08, 96), "error-warning"),
        (CONTROLLER | COUNTERS, crtl(0x20, 128, 3), "error-passive"),
        (CONTROLLER | PROTOCOL | NO_ACK, crtl(0x20), "error-passive"),
        (BUS_OFF, bytes(8), "bus-off"),
        (RESTARTED, bytes(8), "error-active"),
        (CONTROLLER, crtl(0x04), "error-warning"),
        (CONTROLLER, crtl(0x40), "error-active"),
    ]
    for classes, data, state in story:
        changed = bus.state != state
        assert bus.feed(classes, data) is changed
        assert bus.state == state
    assert bus.restarts == 1
    assert bus.entered == {"error-warning": 2, "error-passive": 1, "bus-off": 1, "error-active": 2}
    assert bus.errors == {"protocol": 1, "no ack": 1}
    assert (bus.tx_errors, bus.rx_errors) == (128, 3)


def test_passive_on_one_side_is_passive() -> None:
    bus = BusState()
    bus.feed(CONTROLLER, crtl(0x10 | 0x08))
    assert bus.state == "error-passive"


def test_overflows_are_no_state() -> None:
    bus = BusState()
    assert not bus.feed(CONTROLLER, crtl(0x01))
    assert not bus.feed(CONTROLLER, crtl(0x02))
    assert not bus.feed(TX_TIMEOUT, bytes(8))
    assert (bus.state, bus.rx_overflows) == ("unknown", 1)
    assert bus.errors == {"tx overflow": 1, "tx timeout": 1}


def test_a_state_that_was_asked_for() -> None:
    bus = BusState()
    assert bus.enter("bus-off")
    assert not bus.enter("bus-off")
    assert bus.entered == {"bus-off": 1}


@pytest.mark.parametrize("data", [b"", b"\0", bytes(64)])
def test_error_frames_of_any_length(data: bytes) -> None:
    bus = BusState()
    assert not bus.feed(CONTROLLER | COUNTERS, data)
    assert bus.tx_errors == 0


@given(st.lists(st.tuples(st.integers(0, 2**29 - 1), st.binary(max_size=64))))
def test_noise_never_raises(noise: list[tuple[int, bytes]]) -> None:
    bus = BusState()
    for classes, data in noise:
        before = bus.state
        assert bus.feed(classes, data) is (bus.state != before)
        assert bus.state in STATES
        assert len(bus.errors) <= 7
