import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.can.state import (
    BUS_OFF,
    CONTROLLER,
    COUNTERS,
    FILTER,
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


@pytest.mark.parametrize(("last", "state"), [(BUS_OFF, "bus-off"), (RESTARTED, "error-active")])
def test_an_overflow_that_comes_with_a_state_is_counted_too(last: int, state: str) -> None:
    bus = BusState()
    assert bus.feed(CONTROLLER | last, crtl(0x03))
    assert (bus.state, bus.rx_overflows, bus.errors) == (state, 1, {"tx overflow": 1})


@pytest.mark.parametrize(
    ("classes", "status", "state"), [(BUS_OFF, 0, "bus-off"), (CONTROLLER, 0x20, "error-passive")]
)
def test_other_errors_from_the_wire_are_counts_and_leave_the_state(
    classes: int, status: int, state: str
) -> None:
    bus = BusState()
    bus.feed(classes, crtl(status))
    for _ in range(100):
        assert not bus.feed(PROTOCOL | NO_ACK | TX_TIMEOUT | CONTROLLER | COUNTERS, crtl(0x03, 200, 9))
    assert (bus.state, bus.entered, bus.errors["protocol"]) == (state, {state: 1}, 100)


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


def fed(classes: int, *data: int) -> BusState:
    state = BusState()
    state.feed(classes, bytes(data))
    return state


def test_the_classes_are_those_of_linux() -> None:
    """linux/can/error.h."""
    names = {
        0x01: "tx timeout",
        0x02: "arbitration lost",
        0x08: "protocol",
        0x10: "transceiver",
        0x20: "no ack",
        0x80: "bus error",
    }
    assert {bit: list(fed(bit).errors) for bit in names} == {bit: [name] for bit, name in names.items()}
    assert (fed(0x40).state, fed(0x40).restarts) == ("bus-off", 0)
    assert (fed(0x100).state, fed(0x100).restarts) == ("error-active", 1)
    assert FILTER == 0x01 | 0x04 | 0x10 | 0x40 | 0x100


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (0x04, "error-warning"),
        (0x08, "error-warning"),
        (0x10, "error-passive"),
        (0x20, "error-passive"),
        (0x40, "error-active"),
        (0x80, "unknown"),
    ],
)
def test_the_controller_s_bits_are_those_of_linux(status: int, state: str) -> None:
    assert fed(0x04, 0, status).state == state
    assert fed(0x200, 0, status).state == "unknown"


def test_overflows_are_told_apart() -> None:
    assert (fed(0x04, 0, 1).rx_overflows, fed(0x04, 0, 1).errors) == (1, {})
    assert (fed(0x04, 0, 2).rx_overflows, fed(0x04, 0, 2).errors) == (0, {"tx overflow": 1})


def test_counters_of_zero_are_told_only_by_who_says_that_there_are_counters() -> None:
    assert (fed(0x04).tx_errors, fed(0x04).rx_errors) == (None, None)
    assert (fed(0x200).tx_errors, fed(0x200).rx_errors) == (0, 0)
    assert (fed(0x04, 0, 0, 0, 0, 0, 0, 5, 0).tx_errors, fed(0x04, 0, 0, 0, 0, 0, 0, 0, 6).rx_errors) == (
        5,
        6,
    )
    assert fed(0x02, 0, 0, 0, 0, 0, 0, 5, 6).tx_errors is None
