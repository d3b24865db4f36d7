"""The plan: as few requests as allowed, each value in one of them, and never more than a device takes."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bridges.items import Exchange
from bridges.protocols.modbus.plan import Block, apart, cycles, planned
from bridges.protocols.modbus.protocol import DeviceSettings, Kind, Modbus, Register
from bridges.protocols.modbus.rtu import SILENCE_CHARACTERS, SILENCE_S


def drawn(register: int, kind: Kind, device: int, poll_ms: int | None, long: bool, by: int) -> Register:
    """Return a row: `long`, or where `by` is not 0 with a scale register beside it, or of 3 its higher half,
    if its kind allows."""
    words = kind in ("holding", "input")
    place: dict[str, Any] = {
        "register": register,
        "kind": kind,
        "device": device,
        "poll_ms": poll_ms,
        "pattern": ("a",),
    }
    if long and words:
        return Register(**place, type="f64")
    beside = register + by if register + by >= 0 else register - by
    if by == 3 and words:
        return Register(**place, type="u32", high_register=beside)
    return Register(**place, scale_register=beside if words and by else None)


ROWS = st.lists(
    st.builds(
        drawn,
        st.integers(0, 400) | st.integers(65_000, 65_532),
        st.sampled_from(["coil", "discrete", "input", "holding"]),
        st.integers(1, 2),
        st.sampled_from([None, 100]),
        st.booleans(),
        st.integers(-3, 3),
    ),
    min_size=1,
    max_size=60,
)


@given(ROWS, st.integers(0, 124), st.integers(4, 125))
def test_each_value_is_in_one_request_within_the_limits(rows: list[Register], gap: int, most: int) -> None:
    settings = tuple(DeviceSettings(device=device, most=most) for device in (1, 2))
    blocks = planned(Modbus(registers=tuple(rows), gap=gap, devices=settings))
    assert sorted(id(row) for block in blocks for row in block.rows) == sorted(map(id, rows))
    for block in blocks:
        bits = block.kind in ("coil", "discrete")
        assert block.size <= (2000 if bits else most)
        assert all(
            block.start <= row.span[0] and row.span[1] <= block.start + block.size for row in block.rows
        )
        assert block.probe().data_bytes != block.ask.data_bytes


def spans(*rows: Register, **more: int) -> list[tuple[int, int]]:
    return [(block.start, block.size) for block in planned(Modbus(registers=rows, **more))]  # type: ignore[arg-type]


def at(register: int, pattern: str = "a", **more: str | int) -> Register:
    return Register(register=register, pattern=(pattern,), **more)  # type: ignore[arg-type]


def test_neighbours_are_joined_and_gaps_only_if_allowed() -> None:
    rows = at(0), at(1, type="f32"), at(3), at(6), at(20)
    assert spans(*rows) == [(0, 4), (6, 1), (20, 1)]
    assert spans(*rows, gap=2) == [(0, 7), (20, 1)]
    assert spans(*rows, gap=124) == [(0, 21)]


def test_a_value_and_its_scale_register_are_never_read_apart() -> None:
    current, power, late = at(72, scale_register=76), at(84, scale_register=85), at(90, scale_register=85)
    assert spans(current, at(74), power, late) == [(72, 5), (84, 7)]
    (block,) = planned(Modbus(registers=(current, at(74))))
    assert [(one.start, one.size) for one in apart(block)] == [(72, 5), (74, 1)]


def test_the_halves_of_a_value_are_never_read_apart() -> None:
    above, below = (
        at(10, type="i32", high_register=80),
        at(90, type="u32", high_register=20, scale_register=8),
    )
    assert spans(above, at(11), below, gap=0) == [(8, 83)]
    assert spans(above) == [(10, 71)]
    (block,) = planned(Modbus(registers=(above, at(11))))
    assert [(one.start, one.size) for one in apart(block)] == [(10, 71), (11, 1)]


def test_125_registers_are_one_request_and_126_two_and_2000_coils_one() -> None:
    assert spans(*(at(n) for n in range(125))) == [(0, 125)]
    assert spans(*(at(n) for n in range(126))) == [(0, 125), (125, 1)]
    assert spans(*(at(n, kind="coil") for n in range(2001))) == [(0, 2000), (2000, 1)]


def test_a_block_that_is_refused_is_read_value_by_value() -> None:
    (block,) = planned(Modbus(registers=(at(0), at(0, "b"), at(1, type="f32"))))
    assert [(one.start, one.size, len(one.rows)) for one in apart(block)] == [(0, 1, 2), (1, 2, 1)]


def test_bits_are_taken_from_their_places() -> None:
    rows = tuple(at(n, kind="coil") for n in range(3, 20))
    (block,) = planned(Modbus(registers=rows))
    data = (0b1_0000_0001_0000_0010).to_bytes(3, "little")
    assert [n for n, row in enumerate(rows) if block.bytes_of(row, data) == b"\1"] == [1, 8, 16]
    assert isinstance(block, Block)


def test_a_request_and_its_answer_take_their_bytes_and_a_silence_that_may_be_set() -> None:
    rows = at(7), at(8), at(3, kind="coil")
    found = {one.name: one.item for one in cycles(Modbus(registers=rows))}
    assert found == {
        "device 1, coil 3": Exchange(8 + 6, SILENCE_S, SILENCE_CHARACTERS),
        "device 1, holding 7-8": Exchange(8 + 9, SILENCE_S, SILENCE_CHARACTERS),
    }
    assert [one.item for one in cycles(Modbus(registers=rows[:1], silence_ms=20))] == [Exchange(15, 0.02, 0)]
