"""The page of a report: tokens by name, silence as zero, and nothing is cut off."""

import re
from itertools import pairwise

import hypothesis
import pytest
from hypothesis.strategies import floats

pytest.importorskip("pyspark")

from pyspark.sql import Row

from bus.names import Names
from bus.wire.pattern import Pattern
from pipeline.analysis.audit.verdict import judge
from pipeline.output import svg
from pipeline.output.page import page, window_s

BEGIN_NS = 1_780_000_000_000_000_000
GREEN = ("green", "Green: all of it.")
LONG = "uart /dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A900 of this machine"


def parts(**more: list[Row]) -> dict[str, list[Row]]:
    names = ["summary", "ledger", "agreement", "failovers", "prefixes", "media", "talkers", "hops"]
    names += ["clocks", "last", "windows", "carried", "faults"]
    end = BEGIN_NS + 12_000_000_000
    capture = Row(gateway="gw", boot=1, rows=9, missed=0, holes=0, first_ns=BEGIN_NS, last_ns=end)
    totals = [Row(frames=40, crossed=40)]
    return {**{name: [] for name in names}, "totals": totals, "capture": [capture], **more}


def window(seconds: float, bus: str = "bus plant") -> Row:
    return Row(start_ns=BEGIN_NS + int(seconds * 1e9), bus=bus, brought=20, put=0)


def polylines(text: str) -> list[list[tuple[float, float]]]:
    found = re.findall(r'<polyline points="([^"]+)"', text)
    return [[(float(x), float(y)) for x, y in (point.split(",") for point in line.split())] for line in found]


def test_silence_is_zero_and_not_a_ramp() -> None:
    given = parts(windows=[window(1.0), window(10.0), window(10.0, "bus office")])
    assert window_s(given["capture"]) == pytest.approx(0.1)
    for line in polylines(page("here", GREEN, given, Names())):
        zero = max(y for _, y in line)
        quiet = [y for x, y in line if 200 < x < 600]
        assert quiet
        assert set(quiet) == {zero}
        assert all(ax == bx or ay == by for (ax, ay), (bx, by) in pairwise(line))  # no ramp


def place(text: str) -> tuple[float, float, str, str]:
    found = re.match(r'<text x="([\d.-]+)" y="([\d.-]+)" text-anchor="(\w+)"[^>]*>([^<]*)<', text)
    assert found
    return float(found[1]), float(found[2]), found[3], found[4]


@pytest.mark.parametrize(
    "plot",
    [
        svg.bars([(f"here {LONG} to bus plant", [1234.0, 5.0])], ["half", "all"], "us"),
        svg.lines({LONG: [(0.0, 1.0), (1.0, 2.0)], "bus plant": [(0.0, 1.0)]}, "frames/s"),
        svg.graph(
            {"bridge a on gw": [svg.Joint(LONG[:42], "3 received", False), svg.Joint("p", "4 put", True)]}
        ),
        svg.spans({f"bridge fridge onto {LONG}": [(1.0, 2.0, "a to b")]}, 10.0),
    ],
    ids=["bars", "lines", "graph", "spans"],
)
def test_every_label_is_within_the_picture(plot: str) -> None:
    width, height = map(int, re.findall(r'viewBox="0 0 (\d+) (\d+)"', plot)[0])
    words = [place(text) for text in re.findall(r"<text.*?</text>", plot)]
    assert any(LONG[:42] in word for *_, word in words)
    for x, y, anchor, word in words:
        wide = 6.7 * len(word)  # a letter of 12 pixels, on average
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        assert left > -1, word
        assert left + wide < width + 1, word
        assert 0 < y <= height, word


def test_a_bridge_that_lost_frames_is_red_where_it_lost_them() -> None:
    carried = [
        Row(gateway="gw", hub="bridge b", segment=name, received=9, put=7) for name in ("bus p", "bus q")
    ]
    lost = Row(kind="lost", stage="in bridge", segment="bus q", gateway="gw", hub="bridge b", matched="",
               first_ns=BEGIN_NS, last_ns=BEGIN_NS, count=2)  # fmt: skip
    when = Row(kind="lost", segment="bus q", start_ns=BEGIN_NS + 10**9, count=2)
    beyond = Row(**{**lost.asDict(), "segment": "bus r", "count": 5})
    text = page("here", GREEN, parts(carried=carried, summary=[lost, beyond], faults=[when]), Names())
    red = re.findall(r"<text[^>]*#c2271a[^>]*>([^<]*)<", text)
    assert red == ["bus q: 9 received, 7 put, 2 faults", "further on: 5 faults"]
    assert text.count('stroke="#c2271a"') == 1
    assert "<title>2 lost</title>" in text


def test_a_name_that_fits_nowhere_is_whole_in_its_tooltip() -> None:
    name = "x" * 90 + "y" * 90
    plot = svg.bars([(name, [1.0])], [""], "us")
    assert f"<title>{name}</title>" in plot
    assert "xxx…yyy" in plot


FAULT = Row(kind="lost", stage="on the way", segment="bus plant", gateway="gw", hub="bridge b", count=1)


@pytest.mark.parametrize(("summary", "color"), [([], "green"), ([FAULT], "red")])
def test_the_verdict_has_its_color(summary: list[Row], color: str) -> None:
    given = parts(summary=summary)
    found = judge(given)
    text = page("here", (found.color, found.line), given, Names())
    assert f'<div class="verdict {color}">{color.capitalize()}: 40 frames' in text


def test_tokens_are_names_and_else_hex() -> None:
    last = [Row(tokens=list(Pattern("fridge", "temp")), rows=1)]
    assert "<td>fridge/0x473f888b</td>" in page("/capture", GREEN, parts(last=last), Names(["fridge"]))


def level(seconds: float, signal: str, mean: float = 5.0, rows: int = 3) -> Row:
    place = {"gateway": "gw", "bus": "can can0", "pattern": "car/Engine", "signal": signal, "unit": "rpm"}
    at = BEGIN_NS + int(seconds * 1e9)
    return Row(start_ns=at, **place, rows=rows, mean=mean, min=mean - 1, max=mean + 1)


def test_signals_stand_one_below_the_other_with_losses_and_takeovers_on_their_axis() -> None:
    signals = [level(at, name, at) for name in ("Rpm", "Torque") for at in (1.0, 1.1, 8.0, 8.1)]
    signals.append(level(9.0, "Torque", float("nan")))
    lost = Row(start_ns=BEGIN_NS + 6_000_000_000, kind="lost", segment="bus hall", count=3)
    gone = {"hub": "bridge x", "bus": "bus hall", "token": 5, "from": "gw", "to": "gw-b", "gap_ns": 10**9}
    takeover = Row(**gone, start_ns=BEGIN_NS + 3_000_000_000, end_ns=BEGIN_NS + 4_000_000_000)
    given = parts(signals=signals, faults=[lost], failovers=[takeover])
    text = page("here", GREEN, given, Names()).partition("<h2>Signals")[2].partition("<h2>")[0]
    curves = polylines(text)
    assert len(curves) == 4  # each signal is broken where it paused
    assert curves[0][0][0] == curves[2][0][0]  # one axis
    assert max(y for _, y in curves[0]) < min(y for _, y in curves[2])
    assert "car/Engine/Torque (rpm), gw, can can0" in text
    marks = dict(re.findall(r'fill="([^"]+)"><title>(lost|bridge x)</title>', text))
    assert marks == {svg.RED: "lost", svg.COLORS[1]: "bridge x"}
    assert "2026-" in text
    assert "<h2>Signals" not in page("here", GREEN, parts(), Names())


def test_a_signal_that_stands_still_has_its_value_once() -> None:
    still = level(1.0, "Rpm").asDict()
    given = parts(signals=[Row(**{**still, "min": 5.0, "max": 5.0})])
    assert page("here", GREEN, given, Names()).count(">5<") == 1


def test_a_signal_that_is_rare_is_a_line_and_a_lone_value_a_dot() -> None:
    seconds = {"Slow": (0.5, 4.5, 8.5), "Broken": (0.5, 0.6, 0.7, 0.8, 5.0, 8.5)}
    given = parts(signals=[level(at, name, at, 1) for name, times in seconds.items() for at in times])
    text = page("here", GREEN, given, Names())
    assert sorted(map(len, polylines(text))) == [1, 1, 3, 4]
    assert text.count("<circle") == 2


@pytest.mark.parametrize("seconds", [(1.0, 9.0), (1.0, 9.0, 9.1), (1.0, 5.0, 9.0)])
def test_a_busy_signal_is_broken_where_it_paused_however_few_its_windows_are(
    seconds: tuple[float, ...],
) -> None:
    text = page("here", GREEN, parts(signals=[level(at, "Rpm", at) for at in seconds]), Names())
    assert len(polylines(text)) == sum(b - a > 1 for a, b in pairwise(seconds)) + 1


@pytest.mark.parametrize(
    ("number", "shown"),
    [(1234567, "1.23M"), (999.9, "1k"), (999999.0, "1M"), (3.4028e38, "3.4e+38"), (0.0, "0"),
     (-0.25, "-0.25"), (1e12, "1e+12"), (9.994e-5, "0.0001"), (255, "255")],
)  # fmt: skip
def test_a_number_at_an_axis_is_short(number: float, shown: str) -> None:
    assert svg.short(number) == shown


@hypothesis.given(floats(allow_nan=False, allow_infinity=False))
def test_every_number_at_an_axis_has_room(number: float) -> None:
    assert len(svg.short(number)) <= 9


def test_what_a_capture_has_nothing_of_is_one_line_at_the_end() -> None:
    signals = [level(at, "Rpm", at) for at in (1.0, 1.1)]
    text = page("drive.log", GREEN, parts(signals=signals), Names())
    few = {name: rows for name, rows in parts(signals=signals).items() if rows}
    assert page("drive.log", GREEN, few, Names()) == text
    assert re.findall(r"<h2>([^<]*)</h2>", text) == ["Signals", "Recorders", "Nothing to show"]
    last = text.partition("<h2>Nothing to show</h2>")[2]
    assert last.startswith("<p>Bridges, Faults, When, Ledgers, ")
    assert "<h2>Nothing" not in page("drive.log", GREEN, full(), Names())


def full() -> dict[str, list[Row]]:
    """Return tables each of which has a row."""
    plain = Row(kind="k", segment="s", stage="in", gateway="gw", hub="h", count=1)
    gone = {"hub": "h", "bus": "b", "from": "gw", "to": "gw-b", "gap_ns": 1, "start_ns": BEGIN_NS}
    hop = {
        "kind": "end to end",
        "from_gateway": "gw",
        "from": "a",
        "to": "b",
        "p50": 1.0,
        "p90": 2.0,
        "p99": 3.0,
    }
    return {
        **parts(windows=[window(1.0)], summary=[plain], failovers=[Row(**gone, end_ns=BEGIN_NS + 1)]),
        "carried": [Row(gateway="gw", hub="h", segment="s", received=1, put=1)],
        "faults": [Row(kind="k", segment="s", start_ns=BEGIN_NS, count=1)],
        "media": [Row(bus="b", bytes_per_s=1.0, peak_bytes_per_s=2.0)],
        "hops": [Row(**hop)],
        **{
            name: [Row(frames=1)] for name in ("ledger", "agreement", "prefixes", "talkers", "clocks", "last")
        },
    }
