"""Plausible frames: within their ranges, at their cycle times, as cantools reads them."""

from itertools import pairwise
from struct import unpack

import cantools
from cantools.database.can import Database

from bridges.protocols.dbc.database import load
from bridges.protocols.dbc.plausible import CYCLE_MS, Plausible
from tests.bridges.protocols.dbc.dbc_support import CAR


def played(seconds: float) -> list[tuple[float, int, bytes]]:
    """Return time, identifier and data of the frames of a small car, looked for each ms."""
    source = Plausible(load(CAR, "dbc").messages.values())
    ms = range(int(seconds * 1000))
    return [(at / 1000, frame[0], bytes(frame[1])) for at in ms for frame in source.due(at / 1000, 100)]


def test_each_message_has_its_cycle_time() -> None:
    frames = played(5.0)
    for message in load(CAR, "dbc").messages.values():
        times = [when_s for when_s, identifier, _ in frames if identifier == message.id]
        cycle_s = (message.cycle_ms or CYCLE_MS) / 1000
        assert abs(len(times) - 5.0 / cycle_s) <= 1
        assert all(abs(b - a - cycle_s) < 0.0021 for a, b in pairwise(times))


def test_values_stay_in_their_ranges_and_move_and_all_selectors_come() -> None:
    database = cantools.database.load_string(CAR, "dbc")
    assert isinstance(database, Database)
    seen = dict[tuple[int, str], set[object]]()
    for _, identifier, data in played(20.0):
        found = database.decode_message(identifier, data, decode_choices=False)
        assert isinstance(found, dict)
        for name, value in found.items():
            seen.setdefault((identifier, name), set()).add(value)
            signal = database.get_message_by_frame_id(identifier).get_signal_by_name(name)
            if signal.maximum:
                assert (signal.minimum or 0) <= value <= signal.maximum  # type: ignore[operator]
    assert {name for _, name in seen} == {
        signal.name for message in database.messages for signal in message.signals
    }
    assert all(len(values) > 1 for values in seen.values())
    assert seen[1024, "AliveCounter"] == set(range(16))


def test_a_cycle_that_was_missed_is_left_out() -> None:
    source = Plausible(load(CAR, "dbc").messages.values())
    assert len(source.due(60.0, 100)) == 5
    assert source.next_s > 60.0


UNBOUNDED = """VERSION ""
BU_: X
BO_ 5 Whole: 8 X
 SG_ Free : 0|16@1+ (1,0) [0|0] "" X
 SG_ Signed : 16|16@1- (1,0) [0|0] "" X
BO_ 6 Real: 8 X
 SG_ Wide : 0|64@1- (1,0) [-1.7E+308|1.7E+308] "" X
SIG_VALTYPE_ 6 Wide : 2;
"""


def test_without_a_range_that_can_be_used_values_stay_near_the_middle() -> None:
    source = Plausible(load(UNBOUNDED, "dbc").messages.values())
    frames = [frame for second in range(200) for frame in source.due(second, 100)]
    found = [unpack("<Hhxxxx", data) for identifier, data, _ in frames if identifier == 5]
    for values, middle in zip(zip(*found, strict=True), (32768, 0), strict=True):
        assert 3000 < max(abs(value - middle) for value in values) <= 3277
    reals = [unpack("<d", data)[0] for identifier, data, _ in frames if identifier == 6]
    assert 0.9 < max(map(abs, reals)) <= 1
