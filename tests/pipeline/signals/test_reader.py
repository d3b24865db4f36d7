"""A batch of rows becomes the series of its signals, of CAN frames and of other data."""

import struct
from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

from bridges.items import EXTENDED
from bridges.protocols.nmea.protocol import Nmea
from bridges.protocols.nmea.sentences import checksum
from bridges.protocols.nmea.translator import NmeaTranslator
from bridges.protocols.translator import Wire
from bus.ledger import Stats
from bus.names import Names
from bus.quantity.known import Quantities
from bus.quantity.quantity import Quantity
from bus.wire.frame import unpack
from bus.wire.notation import pattern_of
from bus.wire.pattern import hexadecimal
from capture.schema import Kind
from pipeline.errors import PipelineError
from pipeline.signals.blocks import Block
from pipeline.signals.databases import databases, flaws
from pipeline.signals.ends import ends_with
from pipeline.signals.places import RowPlace
from pipeline.signals.reader import Reader
from pipeline.signals.wanted import Wanted
from tests.bridges.protocols.dbc.dbc_support import CAR, SAIL, WHOLE, fast, written
from tests.pipeline.signals.signals_support import MS, START_NS, Seen, batch_of, blocks_of, shown

GEAR = bytes((3, 0xF6))  # Drive, and -10 degC
ENGINE = bytes.fromhex("2ee03c0000000000")


@pytest.fixture
def car(tmp_path: Path) -> Wanted:
    pytest.importorskip("cantools")
    return Wanted(tuple(databases([str(written(tmp_path, CAR))])))


def test_frames_below_a_root_that_the_names_tell_are_decoded(car: Wanted) -> None:
    blocks = blocks_of(
        [Seen(1, "car/0x200", GEAR), Seen(2, "car/0x100", ENGINE), Seen(3, "car/0x200", GEAR)], car
    )
    found = shown(blocks)
    assert found["car/Gearbox/Gear"] == [(3.0, "Drive")] * 2
    assert found["car/Gearbox/Oil"] == [-10.0, -10.0]
    assert found["car/EngineData/Rpm"] == [3000.0]
    oil = next(one for one in blocks if one.signal == "Oil")
    assert (oil.gateway, oil.bus, oil.unit) == ("gw-a", "can can0", "degC")
    assert oil.ts_ns.tolist() == [START_NS + MS, START_NS + 3 * MS]


def test_frames_of_can_fd_and_those_on_a_wire_are_decoded(car: Wanted) -> None:
    wire = {"gw-a": frozenset({RowPlace("bridge joint", "can can0", 0, 7)})}
    assert shown(blocks_of([Seen(1, "car/0x200/5", GEAR)], car))["car/Gearbox/Oil"] == [-10.0]
    rows = [Seen(1, 0x200, GEAR), Seen(2, EXTENDED | 0x200, GEAR), Seen(3, 0x100, ENGINE + bytes(4))]
    found = shown(blocks_of(rows, car._replace(places=wire)))
    assert found["Gearbox/Oil"] == [-10.0]
    assert found["EngineData/Rpm"] == [3000.0]
    assert blocks_of(rows, car) == []  # without a choice of places, messages count


def test_long_messages_are_joined_over_batches_and_apart_by_gateway(tmp_path: Path) -> None:
    pytest.importorskip("cantools")
    sail = Wanted(tuple(databases([str(written(tmp_path, SAIL))])), roots=(tuple(pattern_of("can")),))
    wire = frozenset({RowPlace("bridge joint", "can can0", 0, 7)})
    reader = Reader(sail._replace(places={"gw-a": wire, "gw-b": wire}))
    rows = [Seen(ms, identifier, bytes(data)) for ms, (identifier, data, _) in enumerate(fast(WHOLE))]
    assert [list(reader.blocks(batch_of(rows[:3]), one)) for one in ("gw-a", "gw-b")] == [[], []]
    for gateway in ("gw-b", "gw-a"):
        found = shown(reader.blocks(batch_of(rows[3:]), gateway))
        assert found["Gnss/32/Lat"] == [52.5]
        assert len(found) == 5


def test_frames_that_no_database_has_are_told_by_identifier(car: Wanted) -> None:
    rows = [Seen(1, "car/0x200", GEAR), Seen(2, "car/0x201", GEAR), Seen(3, "car/0x18FEF100x", b"abc")]
    (one, other) = blocks_of(rows, car._replace(strangers=True))
    assert [one.keys, other.keys] == [
        ("gw-a", "can can0", "car", "0x201", "B"),
        ("gw-a", "can can0", "car", "0x18fef100x", "B"),
    ]
    assert shown([one, other]) == {"car/0x201": [2.0], "car/0x18fef100x": [3.0]}


def test_without_a_database_all_frames_on_a_wire_are_strangers() -> None:
    places = {"gw-a": frozenset({RowPlace("bridge joint", "can can0", 0, Kind.WIRE)})}
    rows = [Seen(1, 0x200, GEAR), Seen(2, 0x200, GEAR), Seen(3, "plant/temp", b"7")]
    assert shown(blocks_of(rows, Wanted(strangers=True, places=places))) == {"0x200": [2.0, 2.0]}


def test_the_usual_root_is_only_a_guess(car: Wanted) -> None:
    """A message `can/7` that no database has is a number under a pattern as any other."""
    found = shown(
        blocks_of([Seen(1, "can/0x200", GEAR), Seen(2, "can/7", b"5.5"), Seen(3, "can/temp", b"6")], car)
    )
    assert found.keys() == {"can/Gearbox/Gear", "can/Gearbox/Oil", "can/0x00000007", "can/temp"}
    assert shown(blocks_of([Seen(1, "car/0x7", b"5.5")], car)) == {}  # `car/0x` is known to have frames


def test_a_database_may_be_for_a_pattern_or_a_segment(tmp_path: Path) -> None:
    pytest.importorskip("cantools")
    path = written(tmp_path, CAR)
    rows = [Seen(1, "car/0x200", GEAR), Seen(2, "can/0x200", GEAR, bus="can socketcan:can1 of 10.0.0.1")]
    for where, names in {
        "car": {"car/Gearbox/Oil"},
        "can1": {"can/Gearbox/Oil"},
        "can can0": {"car/Gearbox/Oil"},
    }.items():
        found = shown(blocks_of(rows, Wanted(tuple(databases([f"{where}={path}"])))))
        assert {name for name in found if name.endswith("Oil")} == names


def test_of_two_messages_with_one_identifier_that_of_the_place_counts_then_the_first(tmp_path: Path) -> None:
    pytest.importorskip("cantools")
    car = str(written(tmp_path, CAR))
    (tmp_path / "b").mkdir()
    other = str(written(tmp_path / "b", CAR.replace("Gearbox", "Box")))
    for words, name in {
        (car, other): "Gearbox", (other, car): "Box", (car, f"can0={other}"): "Box", (car, car): "Gearbox",
    }.items():  # fmt: skip
        found = shown(blocks_of([Seen(1, "car/0x200", GEAR)], Wanted(tuple(databases(words)))))
        assert {one.split("/")[1] for one in found} == {name}
        told = [line for line in flaws(words) if "identifier" in line]
        assert len(told) == (words in ((car, other), (other, car)))
        assert all("1 message with the identifier of another" in line for line in told)


def test_a_database_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("cantools")
    for word, text in {
        f"{tmp_path}/none.dbc": "No such file",
        str(written(tmp_path, "no\ndatabase", "bad.dbc")): "bad.dbc:1: no message in it can be read",
        str(written(tmp_path, CAR, "car.txt")): "its name ends with none of",
    }.items():
        with pytest.raises(PipelineError, match=text):
            databases([word])


DATA: dict[str, tuple[bytes, dict[str, list[Any]]]] = {
    "text": (b"21.5", {"plant/temp": [21.5]}),
    "a word": (b"open", {"plant/temp": ["open"]}),
    "an exponent": (b"+1.5e3 \n", {"plant/temp": [1500.0]}),
    "a double": (struct.pack(">d", 2.25), {"plant/temp": [2.25]}),
    "a value with a unit": (b'{"v":3,"unit":"bar","t":17.5}', {"plant/temp": [3.0]}),
    "members": (
        b'{"a":1,"b":{"c":"x","d":true}}',
        {"plant/temp/a": [1.0], "plant/temp/b.c": ["x"], "plant/temp/b.d": [1.0]},
    ),
    "all signals of a CAN message": (
        b'{"v":{"Rpm":5,"Gear":"Drive"},"t":1}', {"plant/temp/Rpm": [5.0], "plant/temp/Gear": ["Drive"]},
    ),
    "a day": (b'{"d":"2026-11-28","e":{"at":"2026-11-28T10:00:00Z"}}',
              {"plant/temp/d": ["2026-11-28"], "plant/temp/e.at": ["2026-11-28T10:00:00Z"]}),
    "a number of 400 digits": (b'{"a":' + b"1" * 400 + b"}", {"plant/temp/a": [inf]}),
    "JSON that is no text": (b'{"a":"\xff"}', {}),
    "half a character": (b'{"a":"\\ud800","\\udc00":1}', {"plant/temp/a": ["?"], "plant/temp/?": [1.0]}),
    "JSON that is nested deeply": (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, {}),
    "two signs": (b"++5", {"plant/temp": ["++5"]}),
    "no JSON": (b'{"a":', {}),
    "no text": (b"\xff\xfe\x00", {}),
    "nothing": (b"", {"plant/temp": [""]}),
    "a position": (
        b"$GPGGA,123519,4807.038,S,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47\r\n",
        {
            "plant/temp/GGA.lat": [-(48 + 7.038 / 60)], "plant/temp/GGA.lon": [11 + 31 / 60],
            "plant/temp/GGA.quality": [1.0], "plant/temp/GGA.satellites": [8.0], "plant/temp/GGA.hdop": [0.9],
            "plant/temp/GGA.altitude": [545.4], "plant/temp/GGA.geoid": [46.9],
        },
    ),
    "a place of before": (
        b"$GPRMC,123519,V,4807.038,N,01131.000,E,022.4,084.4,230394,,*00\r\n",
        {"plant/temp/RMC.status": ["V"]},
    ),
    "a place that is not known": (
        b"$GPGGA,123519,4807.038,N,01131.000,E,0,03,9.9,,M,,M,,", {"plant/temp/GGA.quality": [0.0]},
    ),
    "a place of old": (
        b"$GPGLL,4807.038,N,01131.000,E",
        {"plant/temp/GLL.lat": [48 + 7.038 / 60], "plant/temp/GLL.lon": [11 + 31 / 60]},
    ),
    "a sentence of the house": (b"$PXYZ,5,on", {"plant/temp/XYZ.1": [5.0], "plant/temp/XYZ.2": ["on"]}),
    "a price": (b"$5.00", {"plant/temp": ["$5.00"]}),
}  # fmt: skip


@pytest.mark.parametrize("sort", DATA)
def test_data_without_a_form_are_what_they_seem(sort: str) -> None:
    data, wanted = DATA[sort]
    found = shown(blocks_of([Seen(1, "plant/temp", data)], Wanted()))
    assert found == {
        name: pytest.approx(values) if isinstance(values[0], float) else values
        for name, values in wanted.items()
    }


@pytest.mark.parametrize("sort", DATA)
def test_no_message_takes_the_values_of_others_away(sort: str) -> None:
    others = [Seen(2, "plant/temp", b'{"z":1,"d":5,"a":"text","v":null}'), Seen(3, "plant/state", b'{"z":2}')]
    found = shown(blocks_of([Seen(1, "plant/temp", DATA[sort][0]), *others], Wanted()))
    assert found["plant/state/z"] == [2.0]
    if DATA[sort][0].startswith(b"{"):
        assert found["plant/temp/z"] == [1.0]


def test_what_a_table_has_as_text_is_no_number() -> None:
    known = Quantities([Quantity(("plant", "state"), is_text=True), Quantity(("plant", "temp"))])
    rows = [Seen(n, name, b"0012345") for n, name in enumerate(("plant/state", "plant/temp"))]
    found = shown(blocks_of(rows, Wanted(quantities=known)))
    assert found == {"plant/state": ["0012345"], "plant/temp": [12345.0]}


def test_each_value_has_the_unit_that_its_message_names() -> None:
    said = [b'{"v":20,"unit":"degC"}', b'{"v":68,"unit":"degF"}', b'{"v":21,"unit":"degC"}', b'{"v":5}']
    blocks = blocks_of([Seen(n, "plant/temp", one) for n, one in enumerate(said)], Wanted())
    found = {one.unit: one.numbers.to_pylist() for one in blocks if one.numbers is not None}
    assert found == {"degC": [20.0, 21.0], "degF": [68.0], "": [5.0]}


@pytest.mark.parametrize("sort", DATA)
@pytest.mark.parametrize("other", DATA)
def test_a_message_alone_says_what_it_says_beside_another(sort: str, other: str) -> None:
    """How a capture is divided into files and batches changes no name, no unit and no value."""
    if {sort, other} == {"a double", "an exponent"}:
        pytest.skip("of 8 bytes nobody can say whether they are a number or text")
    more = [b'{"v":5}', b'{"v":6,"q":"bad"}', b'{"v":{"a":1},"u":2}', b"$GPHDT,274.1,T"]
    rows = [Seen(n, "plant/temp", data) for n, data in enumerate([DATA[sort][0], *more, DATA[other][0]])]
    whole = blocks_of(rows, Wanted())
    single = [block for one in rows for block in blocks_of([one], Wanted())]
    assert said_in(whole) == said_in(single)


def said_in(blocks: list[Block]) -> list[str]:
    """Return the values with their names, units and times."""
    found = list[str]()
    for block in blocks:
        none = [None] * len(block.ts_ns)
        columns = (none if one is None else one.to_pylist() for one in (block.numbers, block.texts))
        rows = zip(block.ts_ns.tolist(), *columns, strict=True)
        found += (str((block.name, block.unit, *row)) for row in rows)
    return sorted(found)


def test_a_sentence_is_not_named_twice() -> None:
    rows = [Seen(1, "gps/GP/GGA", DATA["a position"][0]), Seen(2, "gps/GP/GGA", b"$PXYZ,5,on")]
    found = shown(blocks_of(rows, Wanted()))
    assert {"gps/GP/GGA/lat", "gps/GP/GGA/XYZ.1"} <= found.keys()


def sentences(ms: float, values: bool, form: Any) -> tuple[list[Seen], Nmea]:
    """Return what a gateway makes of three sentences."""
    record = Nmea(root=("gps",), values=values, form=form if values else "text")
    bodies = (b"GPRMC,123519,A,4807.038,S,01131.000,E,1,8", b"GPXYZ,5,on", b"PUBX,00,1")
    line = b"".join(b"$%b*%02X\r\n" % (body, checksum(body)) for body in bodies)
    frames = NmeaTranslator(record, Wire("gps", "bytes", Stats())).receive([line], 1.0)
    seen = [Seen(ms, "/".join(map(hexadecimal, one.tokens)), one.data) for one in map(unpack, frames)]
    return seen, record


@pytest.mark.parametrize("form", ["text", "number", "json"])
@pytest.mark.parametrize("since", [0, 1, 2], ids=["always", "since a reload", "never"])
def test_a_value_that_a_gateway_says_beside_its_sentence_counts_once(form: Any, since: int) -> None:
    """With `number` each counted twice; and where the names of a capture said that there are values now, what
    came before was lost, and so was what another gateway said."""
    minute_ms, names = 60_000, ("lat", "lon", "speed", "course", "status")
    found = [sentences(at * minute_ms, at >= since, form) for at in range(2)]
    reader = Reader(Wanted(names=Names([*found[-1][1].names(), *names, "gps", "XYZ", "UBX"])))
    rows = [row for seen, _ in found for row in seen]
    times = Counter((one.name, ms) for one in reader.blocks(batch_of(rows), "gw-a") for ms in one.ts_ns)
    wanted = {*(f"gps/GP/RMC/{name}" for name in names), "gps/GP/XYZ/1", "gps/P/UBX/1"}
    assert {name for name, _ in times} >= wanted
    assert all(times[name, START_NS + at * minute_ms * MS] == 1 for name in wanted for at in range(2))
    assert set(times.values()) == {1}


def test_data_of_one_pattern_that_are_not_alike_keep_what_each_says() -> None:
    rows = [Seen(n, "plant/temp", data) for n, data in enumerate([b"1", b"off", b"\xff", b"nan", b"2.5"])]
    (block,) = blocks_of(rows, Wanted())
    assert shown([block])["plant/temp"][:2] == [1.0, "off"]
    assert [at - START_NS for at in block.ts_ns.tolist()] == [0, MS, 3 * MS, 4 * MS]
    mixed = [Seen(1, "gps", b'{"a":1}'), Seen(2, "gps", b'{"a":"x"}'), Seen(3, "gps", b"{")]
    assert shown(blocks_of(mixed, Wanted())) == {"gps/a": [1.0, "x"]}


def test_a_form_that_is_given_is_that_of_the_longest_beginning() -> None:
    eight = b"12345678"
    pattern = tuple(pattern_of("plant"))
    given: tuple[tuple[tuple[int, ...], str], ...] = ((pattern, "text"),)
    assert shown(blocks_of([Seen(1, "plant/temp", eight)], Wanted(given=given))) == {
        "plant/temp": [12345678.0]
    }
    given = ((pattern, "number"), ((*pattern, 5), "struct:<HhB"))
    found = shown(
        blocks_of(
            [Seen(1, "plant/temp", eight), Seen(2, "plant/5", b"\x01\x00\xff\xff\x07")], Wanted(given=given)
        )
    )
    assert found == {
        "plant/temp": [struct.unpack(">d", eight)[0]],
        "plant/0x00000005/0": [1.0], "plant/0x00000005/1": [-1.0], "plant/0x00000005/2": [7.0],
    }  # fmt: skip


def test_what_gateways_say_is_no_signal_and_neither_are_messages_that_are_no_frames() -> None:
    own = ("event", "log/gw/error", "alarm/gw/high", "gateway/gw", "values/ask")
    rows = [Seen(ms, f"buscoupler/{one}", b"5") for ms, one in enumerate(own)]
    assert blocks_of([*rows, Seen(9, "/", b"5")], Wanted()) == []


@pytest.mark.parametrize(
    ("end", "names"),
    [
        ("temp", {"plant/temp"}), ("PLANT/Temp", {"plant/temp"}), ("Gearbox/Oil", {"car/Gearbox/Oil"}),
        ("oil", {"car/Gearbox/Oil"}), ("gps/b.c", {"gps/b.c"}), ("emp", set()), ("none", set()),
    ],
)  # fmt: skip
def test_only_the_signals_that_are_asked_for_are_there(end: str, names: set[str], car: Wanted) -> None:
    rows = [Seen(1, "car/0x200", GEAR), Seen(2, "plant/temp", b"1"), Seen(3, "gps", b'{"a":1,"b":{"c":2}}')]
    assert shown(blocks_of(rows, car._replace(ends=(end,)))).keys() == names
    assert ends_with("a/b", "b")
    assert not ends_with("a/bb", "b")


def test_only_rows_of_the_time_that_is_asked_for_are_there() -> None:
    rows = [Seen(ms, "plant/temp", b"%d" % ms) for ms in range(10)]
    at = [START_NS + ms * MS for ms in range(11)]
    assert shown(blocks_of(rows, Wanted(from_ns=at[2], to_ns=at[4]))) == {"plant/temp": [2.0, 3.0]}
    inside = ((at[1], at[2]), (at[5], at[5]), (at[7], at[9]))
    assert shown(blocks_of(rows, Wanted(inside=inside))) == {"plant/temp": [1.0, 7.0, 8.0]}
    assert blocks_of(rows, Wanted(inside=())) == []
