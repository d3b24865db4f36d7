"""Capacities compared with the figures of the field studies, and the findings of `check` about them."""

from pathlib import Path

import pytest

from bridges.media.can.medium import Can
from bridges.media.i2c.medium import I2c
from bridges.media.uart.medium import Uart
from tests.topologies.support import GATEWAY, errors, warnings

BUS = GATEWAY + "buses: {p: {on: gw}}\n"


def promised(side: str, rates: str) -> str:
    return BUS + f"bridges: {{b: {{on: gw, join: [bus: p, {side}], rates: [{rates}]}}}}"


# peers.md section 5: worst-case frames a second with 29-bit identifiers, 8 bytes (7 of ours) in each.
@pytest.mark.parametrize(
    ("bitrate", "frames"), [(125_000, 781), (250_000, 1562), (500_000, 3125), (1_000_000, 6250)]
)
def test_classic_can_matches_the_published_frame_rates(bitrate: int, frames: int) -> None:
    assert int(round(1 / (Can(channel="c", bitrate=bitrate).seconds(7, False) or 0), 6)) == frames


# The same section for CAN FD; it gives the results of its own rounding, so within 1 percent.
@pytest.mark.parametrize(
    ("bitrate", "data", "size", "frames"),
    [(500_000, 2_000_000, 63, 2205), (1_000_000, 5_000_000, 63, 5186), (1_000_000, 8_000_000, 63, 7048),
     (500_000, 2_000_000, 7, 5847), (1_000_000, 5_000_000, 7, 12531), (1_000_000, 8_000_000, 7, 14035)],
)  # fmt: skip
def test_can_fd_is_near_the_published_frame_rates(bitrate: int, data: int, size: int, frames: int) -> None:
    can = Can(channel="c", fd=True, bitrate=bitrate, data_bitrate=data)
    assert 1 / (can.seconds(size, False) or 0) == pytest.approx(frames, rel=0.01)


# wire.md section 5: frames a transfer, for TMQ frames of 20, 200 and 2048 bytes in envelopes.
@pytest.mark.parametrize(("size", "classic", "fd"), [(20, 5, 1), (200, 31, 4), (2048, 295, 33)])
def test_transfers_take_as_many_can_frames_as_the_wire_format_says(size: int, classic: int, fd: int) -> None:
    slow = Can(channel="c", bitrate=1000)
    fast = Can(channel="c", fd=True, bitrate=1000, bitrate_switch=False)
    assert round((slow.seconds(size, True) or 0) * 1000 / 160) == classic
    per_frame = fast.seconds(63, False) or 0
    total = fast.seconds(size, True) or 0
    assert fd - 1 < total / per_frame <= fd


# wire.md sections 6 and 8: bytes on the line, zeros on both sides included.
@pytest.mark.parametrize(("size", "line"), [(17 + 12, 36), (17, 24), (3072 + 12, 3103)])
def test_uart_bytes_match_the_wire_format(size: int, line: int) -> None:
    assert (Uart(port="/x", baud=10_000).seconds(size, False) or 0) * 1000 == pytest.approx(line)


# wire.md section 7: bytes on the wire from a target, 20, 200 and 2048 bytes in envelopes.
@pytest.mark.parametrize(("size", "line"), [(20, 60), (200, 312), (2048, 2892)])
def test_i2c_bytes_match_the_wire_format(size: int, line: int) -> None:
    assert (I2c(bus=1, targets=(8,), clock_hz=9000).seconds(size, False) or 0) * 1000 == pytest.approx(line)
    assert (I2c(bus=1, targets=(8, 9), clock_hz=9000).seconds(size, False) or 0) * 1000 == pytest.approx(
        2 * line
    )


def test_a_rate_that_cannot_be_carried_is_an_error() -> None:
    # 1 token and 32 bytes: 262 a second fill 115200 baud (peers.md), CRC-32 and zeros make it fewer.
    rate = "{pattern: [a], frames_per_s: %d, data_bytes: 32}"
    (text,) = errors(promised("uart: /dev/x", rate % 260))
    assert "uart /dev/x" in text
    assert (
        errors(promised("uart: /dev/x", rate % 120)) == warnings(promised("uart: /dev/x", rate % 120)) == []
    )
    assert len(warnings(promised("uart: /dev/x", rate % 200))) == 1


def test_a_side_that_states_a_policy_may_be_promised_too_much() -> None:
    for rate in (200, 9000):
        text = promised("{uart: /dev/x, shed: oldest}", f"{{frames_per_s: {rate}, data_bytes: 32}}")
        assert errors(text) == warnings(text) == []


def test_what_does_not_cross_a_side_does_not_count() -> None:
    rate = "{pattern: [a], frames_per_s: 9000}"
    assert errors(promised("{uart: /dev/x, pattern: [b]}", rate)) == []
    assert errors(promised("{uart: /dev/x, deny: [[a]]}", rate)) == []
    assert errors(promised("{uart: /dev/x, allow: [[b]]}", rate)) == []
    assert errors(promised("{uart: /dev/x, allow: {in: [[b]], out: [[c]]}}", rate)) == []
    assert errors(promised("{uart: /dev/x, deny: {in: [[a]], out: [[]]}}", rate)) == []
    for one in (
        "deny: [[a, b]]",
        "allow: {in: [[a, b]], out: [[c]]}",
        "allow: {in: [[c]]}",
        "deny: {in: [[a]]}",
    ):
        assert len(errors(promised(f"{{uart: /dev/x, {one}}}", rate))) == 1


def test_bridges_on_one_can_bus_share_it() -> None:
    can = "can: {channel: can0, bitrate: 500000, subject: %d}"
    rates = "rates: [{pattern: [%s], frames_per_s: 700, data_bytes: 0, tokens: 1}]"
    one, two = (
        f"{name}: {{on: gw, pattern: [{name}], join: [bus: p, {can % n}], {rates % name}}}"
        for n, name in enumerate(["x", "y"])
    )
    assert errors(BUS + f"bridges: {{{one}}}") == []
    assert any(
        "can socketcan:can0" in e for e in errors(BUS + f"bridges: {{{one}, {two}}}".replace("700", "1100"))
    )


def test_what_cannot_be_judged_is_said() -> None:
    assert ["without bitrate" in w for w in warnings(promised("can: can0", "{frames_per_s: 1}"))] == [True]
    stray = promised("uart: /dev/x", "{pattern: [b], frames_per_s: 1}").replace(
        "on: gw, join", "on: gw, pattern: a, join"
    )
    assert ["no frame of this pattern" in w for w in warnings(stray)] == [True]


@pytest.mark.parametrize(("bitrate", "words"), [(500_000, ""), (20_000, "fill 75% of the line (Engine 75%)")])
def test_cycle_times_of_a_database_are_compared_with_the_line(
    tmp_path: Path, bitrate: int, words: str
) -> None:
    path = tmp_path / "engine.dbc"
    signal = ' SG_ Rpm : 0|16@1+ (1,0) [0|0] "rpm" X\n'
    cycle = 'BA_DEF_ BO_ "GenMsgCycleTime" INT 0 999;\nBA_ "GenMsgCycleTime" BO_ 5 9;\n'
    path.write_text(f'VERSION ""\nBU_: X\nBO_ 5 Engine: 8 X\n{signal}{cycle}')
    side = f"can: {{channel: can0, bitrate: {bitrate}}}, protocol: {{dbc: {{file: {path}}}}}"
    found = warnings(BUS + f"bridges: {{b: {{on: gw, join: [bus: p, {{{side}}}]}}}}")
    assert [words in one for one in found] == ([True] if words else [])


ROWS = ", ".join(f"{{register: {20 * n}, type: f32, pattern: m/{n}}}" for n in range(8))
CHIPS = ", ".join(f"{{target: 0x48, register: {n}, type: i16, pattern: c/{n}}}" for n in range(8))


@pytest.mark.parametrize(
    ("medium", "protocol", "words"),
    [
        ("uart: {port: /dev/a, baud: 9600}", f"modbus: {{registers: [{ROWS}]}}", ""),
        ("uart: {port: /dev/a, baud: 9600}", f"modbus: {{poll_ms: 200, registers: [{ROWS}]}}", "fill 100%"),
        (
            "uart: {port: /dev/a, baud: 9600}",
            f"modbus: {{poll_ms: 100, registers: [{ROWS}]}}",
            "cannot keep this pace",
        ),
        ("uart: {port: /dev/a, baud: 115200}", f"modbus: {{poll_ms: 100, registers: [{ROWS}]}}", ""),
        (
            "uart: {port: /dev/a, baud: 115200}",
            f"modbus: {{poll_ms: 100, silence_ms: 20, registers: [{ROWS}]}}",
            "cannot keep this pace",
        ),
        ("uart: {port: /dev/a, baud: 9600}", "queries: {queries: [{ask: 'VOLT?', pattern: v}]}", ""),
        (
            "uart: {port: /dev/a, baud: 9600}",
            "queries: {poll_ms: 20, queries: [{ask: 'VOLT?', pattern: v}, {ask: 'CURR?', pattern: c}]}",
            "cannot keep this pace",
        ),
        ("uart: {port: 'socket://a:1', baud: 9600}", f"modbus: {{poll_ms: 10, registers: [{ROWS}]}}", ""),
        ("tcp: {host: a, port: 502}", f"modbus: {{poll_ms: 1, registers: [{ROWS}]}}", ""),
        ("i2c: {bus: 1}", f"registers: {{poll_ms: 10, registers: [{CHIPS}]}}", ""),
        ("i2c: {bus: 1, clock_hz: 10000}", f"registers: {{poll_ms: 10, registers: [{CHIPS}]}}", "fill 360%"),
    ],
)
def test_polling_is_compared_with_the_line(medium: str, protocol: str, words: str) -> None:
    """Requests, answers and the silences that end them: the time of the devices comes on top."""
    found = warnings(
        BUS + f"bridges: {{b: {{on: gw, join: [bus: p, {{{medium}, protocol: {{{protocol}}}}}]}}}}"
    )
    found = [one for one in found if "of the line" in one]
    assert [words in one and "poll_ms" in one for one in found] == ([True] if words else [])


def on_slow_can(gateways: int, more: str) -> str:
    """Return a bus of CAN at 10 kbit/s, where a promised frame takes 16 ms, 40 times a second."""
    names = [f"g{number}" for number in range(gateways)]
    can = "interface: udp_multicast, channel: 239.1.1.1, bitrate: 10000, subjects: {a: 4100}"
    rates = ", rates: [{pattern: a, frames_per_s: 40, data_bytes: 7}]"
    bridges = [
        f"  b{at}: {{on: {one}, pattern: a, join: [bus: p{at}, can: {{{can}{more if at else ''}}}]"
        f"{'' if at else rates}}}\n"
        for at, one in enumerate(names)
    ]
    return (
        f"name: t\ngateways: {{{', '.join(f'{one}: {{node: {at + 1}}}' for at, one in enumerate(names))}}}\n"
        f"buses: {{{', '.join(f'p{at}: {{on: {one}}}' for at, one in enumerate(names))}}}\n"
        f"bridges:\n{''.join(bridges)}"
    )


@pytest.mark.parametrize(
    ("gateways", "more", "share"),
    [(1, "", ""), (3, "", ""), (4, "", "70%"), (8, "", "77%"), (8, ", listen_only: true", "")],
)
def test_the_heartbeats_of_all_links_with_subjects_count(gateways: int, more: str, share: str) -> None:
    """Each takes 1.6 % of this bus, whether its gateway has promised frames or not."""
    found = [one for one in warnings(on_slow_can(gateways, more)) if "promised" in one and "carry" in one]
    assert [share for share in (share,) if share] == [one.split()[4] for one in found]
