"""VE.Direct of Victron: values by their labels, HEX frames passed over, wrong sums, what is not available."""

import struct
from itertools import product

import pytest

from bridges.protocols.vedirect.labels import UNITS
from bridges.protocols.vedirect.protocol import VeDirect
from bridges.protocols.vedirect.text import END_BYTES, HEX_DIGITS_MAX, Plain
from bus.quantity.known import Quantities
from bus.wire.pattern import token
from tests.bridges.protocols.blocks_support import CHARGER, MONITOR, block, heard
from tests.bridges.protocols.spoken_support import message, told, translator

ROOT = VeDirect(root=("v",))
FIRST = block(CHARGER)
HEX = b":7F0ED0071004F\n"


def summing_to(byte: int) -> bytes:
    """Return a block whose checksum is this byte."""
    found = (
        block({"X": bytes(three).decode()}) for three in product(range(33, 127), (33, 80, 126), (33, 126))
    )
    return next(one for one in found if one[-1] == byte)


def test_each_field_is_a_frame_and_what_is_no_number_is_text() -> None:
    values, rejected, counts = heard(ROOT, FIRST, block(CHARGER))
    assert values == {f"v/{label}": value for label, value in CHARGER.items()}
    assert (rejected, counts) == ({"no beginning": 1}, (1, len(FIRST)))


def test_what_is_not_available_is_no_value_and_is_counted() -> None:
    values, rejected, _ = heard(ROOT, FIRST, block(MONITOR))
    assert values == {f"v/{label}": value for label, value in MONITOR.items() if label != "T"}
    assert rejected == {"no beginning": 1, "not available": 1}


@pytest.mark.parametrize("byte", b"\t\n\r\x00:!\x80\xff")
@pytest.mark.parametrize("after", [b"", HEX])
def test_a_checksum_may_be_any_byte_and_is_there_at_once(byte: int, after: bytes) -> None:
    made = translator(ROOT)
    one = summing_to(byte)
    for number in FIRST + one[:-1]:
        assert made.take([bytes([number])], 0.0) == []
    assert len(made.take([one[-1:]], 0.0)) == 1
    assert len(made.take([after + FIRST], 0.0)) == len(CHARGER)
    assert "checksum" not in made.wire.stats.rejected


@pytest.mark.parametrize("at", range(0, len(FIRST) - 1, 3))
def test_hex_frames_between_and_inside_of_a_block_are_no_part_of_it(at: int) -> None:
    values, rejected, counts = heard(ROOT, FIRST + HEX + FIRST[:at] + HEX * 2 + FIRST[at:] + HEX)
    assert values["v/V"] == "26410"
    assert rejected == {"no beginning": 1, "hex frame": 4}
    assert counts == (1, len(FIRST))


@pytest.mark.parametrize("at", range(1, len(HEX)))
def test_a_hex_frame_that_comes_first_is_known_however_it_is_cut(at: int) -> None:
    plain = Plain()
    assert [plain.feed(HEX[:at]), plain.feed(HEX[at:])] == [(b"", 0), (b"", 1)]


def test_a_colon_that_begins_no_hex_frame_is_text() -> None:
    values, rejected, _ = heard(ROOT, FIRST, block({"V": "1", "NAME": "a:b", "ID": "12:30"}))
    assert [*values.values()] == ["1", "a:b", "12:30"]
    assert rejected == {"no beginning": 1}
    plain = Plain()
    assert plain.feed(b":" + b"A" * (HEX_DIGITS_MAX + 1) + b"\n")[1] == 0
    assert plain.feed(b"x:12") == (b"x", 0)
    assert plain.take_rest() == b":12"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (FIRST[:-1] + bytes([FIRST[-1] ^ 1]), "checksum"),
        (FIRST[:40] + FIRST[41:], "checksum"),
        (block({"V": "1", "": "2"}), "malformed"),
        (block({"V": "1\t2"}), "malformed"),
        (block({"V": "\xff"}), "malformed"),
        (block({"a/b": "1"}), "malformed"),
        (block({}), "malformed"),
        (block({"V": "1\r\nV\t2"}), "field twice"),
        (block({"V": "1" * 3000}), "oversize"),
    ],
)
def test_a_block_that_is_not_as_it_was_sent_gives_no_value(data: bytes, reason: str) -> None:
    values, rejected, (found, noise) = heard(
        VeDirect(root=("v",), receive=("SOC",)), FIRST, data, block(MONITOR)
    )
    assert values == {"v/SOC": "978"}
    assert rejected == {"no beginning": 1, reason: 1}
    assert (found, noise) == (1, len(FIRST) + len(data))


def test_two_blocks_whose_border_was_lost_are_kept_back() -> None:
    joined = FIRST[:-END_BYTES] + block(MONITOR)
    assert heard(ROOT, FIRST, joined)[0] == {}


def test_labels_can_be_chosen_and_others_do_not_enter() -> None:
    record = VeDirect(root=("v",), receive=("V", "XNEW"))
    assert record.way.inward == (("v", "V"), ("v", "XNEW"))
    assert record.way.outward == ()
    assert heard(record, FIRST, block(CHARGER, XNEW="007"))[0] == {
        "v/V": "26410",
        f"v/0x{token('XNEW'):08x}": "007",
    }
    with pytest.raises(ValueError, match="receive"):
        VeDirect(receive=())


def test_a_label_that_never_comes_is_refused_or_told_with_the_one_that_was_meant() -> None:
    with pytest.raises(ValueError, match="receive: 'SO C' is no label"):
        VeDirect(receive=("V", "SO C"))
    (problem,) = VeDirect(receive=("V", "soc", "XNEW")).problems()
    assert (problem.text, problem.is_error) == (
        'receive: no device is known that sends "soc"; did you mean "SOC"?',
        False,
    )


def test_labels_have_up_to_32_characters_in_settings_as_in_blocks() -> None:
    record, longest = VeDirect(root=("v",), receive=("L" * 32,)), block({"L" * 32: "1"})
    assert list(heard(record, FIRST, longest)[0].values()) == ["1"]
    assert heard(record, FIRST, block({"L" * 33: "1"}))[1] == {"no beginning": 1, "malformed": 1}
    with pytest.raises(ValueError, match="receive"):
        VeDirect(receive=("L" * 33,))


def test_forms() -> None:
    made = translator(VeDirect(form="number"), unix_s=lambda now_s: 1e9 + now_s)
    made.take([FIRST], 0.0)
    fields = block(CHARGER, FW="159", XNEW="7", YNEW="07")
    numbers = dict(told(made.take([fields], 0.0), *UNITS, "vedirect", "XNEW"))
    assert numbers["vedirect/I"] == struct.pack(">d", -120)
    assert numbers["vedirect/XNEW"] == struct.pack(">d", 7)
    assert len(numbers) == len({*CHARGER} & {*UNITS}) + 1
    assert not {"vedirect/LOAD", "vedirect/SER#", "vedirect/FW"} & set(numbers)
    assert "not available" not in made.wire.stats.rejected
    made = translator(VeDirect(form="json"), unix_s=lambda now_s: 1e9 + now_s)
    made.take([FIRST], 0.0)
    known = dict(told(made.take([FIRST], 0.25), *VeDirect().names(), "vedirect"))
    assert known["vedirect/H19"] == b'{"v":6043,"unit":"0.01 kWh","t":1000000000.25}'
    assert known["vedirect/FW"] == b'{"v":"0159","unit":"","t":1000000000.25}'


def test_units_are_known_and_what_is_text_is_so() -> None:
    known = Quantities(ROOT.quantities())
    units = {
        label: found.unit
        for label in ("V", "I", "H20", "SOC", "TTG", "CS")
        if (found := known.find((token("v"), token(label))))
    }
    assert units == {"V": "mV", "I": "mA", "H20": "0.01 kWh", "SOC": "‰", "TTG": "min", "CS": ""}
    assert {one.pattern[-1] for one in known if one.is_text} >= {"SER#", "FW", "LOAD"}
    assert not [one for one in VeDirect(form="number").quantities() if one.is_text]
    assert [one.pattern for one in VeDirect(receive=("V",)).quantities()] == [("vedirect", "V")]


def test_nothing_leaves() -> None:
    assert translator(ROOT).send(message("v/V", b"1"), 0.0).why == "not sent here"


def test_a_device_that_comes_back_is_heard_from_its_next_whole_block_on() -> None:
    made = translator(ROOT)
    made.take([FIRST, FIRST[:50], HEX[:4]], 0.0)
    made.finish(0.0)
    assert made.wire.stats.rejected == {"no beginning": 1, "unfinished": 1}
    assert made.noise == len(FIRST) + 50 + 4
    assert made.take([FIRST[50:]], 0.0) == []
    assert made.wire.stats.rejected == {"no beginning": 2, "unfinished": 1}
    assert len(made.take([FIRST], 0.0)) == len(CHARGER)
