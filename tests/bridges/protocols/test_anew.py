"""Two gateways that hear the same on a wire: a protocol says whether they make the same frames of it."""

from pathlib import Path
from typing import Any

import pytest

from bridges.items import CanFrame
from bridges.protocols.bytes.protocol import Bytes
from bridges.protocols.dbc.protocol import Dbc
from bridges.protocols.jsonl.protocol import JsonLines
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.nmea.protocol import Nmea
from bridges.protocols.p1.protocol import P1
from bridges.protocols.protocol import Protocol
from bridges.protocols.raw.protocol import Raw
from bridges.protocols.slip.protocol import Slip
from bridges.protocols.vedirect.protocol import VeDirect
from bridges.protocols.xbee.protocol import Xbee
from tests.bridges.protocols.blocks_support import CHARGER, block, telegram
from tests.bridges.protocols.dbc.dbc_support import written
from tests.bridges.protocols.spoken_support import translator

BLOCKS = [block(CHARGER), telegram()] * 2
TEXT = [b"$GPGLL,1*4F\n", b'{"a": 1}\n', b"\xc0x\xc0", b"\x7e\x00\x0c\x90" + bytes(11) + b"\x6f"] * 2
FRAMES: list[CanFrame] = [(0x100, bytes((n, *range(7))), 0) for n in range(8)]


def made(record: Protocol, items: list[Any], start_s: float) -> set[bytes]:
    """Return the frames that a gateway makes which hears the items a little later than another one."""
    one = translator(record, record.items[0], unix_s=lambda now_s: 1e9 + now_s)
    found = set[bytes]()
    for number, item in enumerate(items):
        found.update(one.receive([item], start_s + 0.01 * number))
    return found | set(one.turn(start_s + 9.0).messages)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "settings" in metafunc.fixturenames:
        metafunc.parametrize(
            "settings", [{}, {"form": "number"}, {"form": "json"}, {"per": "message"}, {"publish": "change"}]
        )


@pytest.mark.parametrize("kind", [Lines, Nmea, JsonLines, Slip, Bytes, Raw, Xbee, VeDirect, P1])
def test_frames_are_the_same_at_all_gateways_unless_the_protocol_says_so(kind: type[Protocol]) -> None:
    record = kind()
    items = FRAMES if record.items[0] == "frames" else TEXT + BLOCKS
    assert (made(record, items, 0.0) != made(record, items, 0.002)) is record.anew


def test_values_with_their_time_are_not_the_same(tmp_path: Path, settings: Any) -> None:
    record = Dbc(file=str(written(tmp_path)), root=("car",), **settings)
    assert (made(record, FRAMES, 0.0) != made(record, FRAMES, 0.002)) is record.anew


@pytest.mark.parametrize("kind", [VeDirect, P1])
def test_values_of_blocks_have_a_time_of_ours_in_json_alone(kind: Any) -> None:
    data = block(CHARGER) if kind is VeDirect else telegram()
    for form in ("text", "number", "json"):
        record = kind(form=form)
        assert made(record, [data] * 3, 0.0)
        assert (made(record, [data] * 3, 0.0) != made(record, [data] * 3, 0.002)) is record.anew


def test_values_of_sentences_have_a_time_of_ours_in_json_alone() -> None:
    data = b"$SDDPT,3.6*50\n"
    for form in ("text", "number", "json"):
        record = Nmea(values=True, form=form)
        assert len(made(record, [data], 0.0)) == 2
        assert (made(record, [data] * 3, 0.0) != made(record, [data] * 3, 0.002)) is record.anew


def test_values_of_some_frames_only_may_not_be_the_same(tmp_path: Path) -> None:
    assert Dbc(file=str(written(tmp_path)), root=("car",), every_ms=100.0).anew
