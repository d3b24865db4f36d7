"""The sides of bridges: other names on a wire, and what is refused in their words."""

import pytest

from bus.wire.notation import text_of
from tests.topologies.support import GATEWAY, findings, warnings
from topologies.loading.loader import loads
from topologies.model import Side

BUS = GATEWAY + "buses: {p: {on: gw}}\nbrokers: {m: {on: gw, listen: 'tcp://127.0.0.1:9942'}}\n"


def side(words: str) -> Side:
    return loads(f"{BUS}bridges: {{b: {{on: gw, join: [bus: p, {{{words}}}]}}}}\n").bridges["b"].at("gw")[1]


def said(words: str) -> list[str]:
    found = findings(f"{BUS}bridges: {{b: {{on: gw, join: [bus: p, {{{words}}}]}}}}\n")
    return [finding.text for finding in found]


LINES = "uart: /dev/x, protocol: {lines: {receive: gps, send: [show]}}"
TMQ = "tmq: {subscribe: [gps], publish: [show]}"
RAW = "can: {channel: can0, bitrate: 500000}, protocol: {raw: {root: car, receive: [0x100], send: [0x200]}}"


@pytest.mark.parametrize(
    ("words", "inward", "outward"),
    [
        (LINES, "gps", "show"),
        (f"{LINES}, prefix: hall/a", "hall/a/gps", "hall/a/show"),
        (f"{LINES}, rename: {{gps: where}}, prefix: h", "h/where", "h/show"),
        (f"{LINES}, prefix: h, allow: {{in: h/gps/x, out: h}}", "h/gps/x", "h/show"),
        (f"{LINES}, prefix: h, allow: {{in: gps, out: show}}", "", ""),
        (f"{LINES}, strip: gps", "/", ""),
        (f"{TMQ}, prefix: h", "h/gps", "h/show"),
        (f"{RAW}, rename: {{car/0x100: engine, car/0x200: torque}}", "engine", "torque,car/0x200r"),
        (f"{RAW}, strip: car, prefix: truck", "truck/0x100", "truck/0x200,truck/0x200r"),
    ],
)
def test_the_ways_of_protocols_are_told_in_the_names_of_the_bridge(
    words: str, inward: str, outward: str
) -> None:
    made = side(words)
    assert ",".join(map(text_of, made.allowed.inward)) == inward
    assert ",".join(map(text_of, made.allowed.outward)) == outward
    assert (made.denied.inward == ((),)) == (not inward)
    assert (made.denied.outward == ((),)) == (not outward)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("bus: p, rename: {a: c, b: c}", "rename: c would be the name of two patterns, a and b: keep one"),
        ("bus: p, rename: {7: c, 0x7: d}", "is given two names"),
        ("bus: p, rename: {/: c}", "/ is no name"),
        ("bus: p, rename: {a/#: c}", "# is no wildcard here"),
        ("bus: p, strip: 0", "out of range"),
        ("bus: p, strip: [1, x, 3.5]", "expected"),
        ("bus: p, refresh_ms: 5", "refresh_ms has no effect here"),
        ("bus: p, unchanged: keep", "expected drop"),
        ("bus: p, limits: [{pattern: a}]", '"frames_per_s" is missing'),
        ("bus: p, limits: [{frames_per_s: 0}]", "out of range"),
        ("bus: p, limits: [{frames_per_s: 1, direction: both}]", "expected in or out"),
        ("uart: /dev/x, opaque: w", "uart carries frames only: opaque is for a bus or a url"),
    ],
)
def test_wrong_words_are_one_line(words: str, text: str) -> None:
    (found,) = said(words)
    assert text in found


def test_a_number_is_tokens_and_a_list_or_text_a_pattern() -> None:
    assert side("bus: p, strip: 2").strip == 2
    assert side("bus: p, strip: [2]").strip == (2,)
    assert side("bus: p, strip: a/7").strip == ("a", 7)
    assert side('bus: p, strip: "2"').strip == ("2",)


def test_names_on_a_side_are_known_and_a_side_can_be_hashed() -> None:
    from topologies.names import known

    text = (
        f"{BUS}bridges: {{b: {{on: gw, join: [bus: p, {{bus: p, prefix: hall, rename: {{gps: where}}}}]}}}}\n"
    )
    topology = loads(text)
    assert {"hall", "gps", "where"} <= set(known(topology))
    assert len({hash(one) for one in topology.bridges["b"].at("gw")}) == 2


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("bus: p, prefix: h, pattern: temp", 1),
        ("bus: p, prefix: h, allow: {in: h/temp, out: temp}", 1),
        ("bus: p, prefix: h, deny: /", 0),
        ("bus: p, rename: {a: b}, limits: [{pattern: a, frames_per_s: 1}]", 1),
        ("bus: p, rename: {a: b}, pattern: b", 0),
        ("bus: p, strip: 2, pattern: b", 0),
    ],
)
def test_a_pattern_that_is_a_name_of_the_wire_is_a_warning(words: str, count: int) -> None:
    found = warnings(
        f"{BUS}bridges: {{b: {{on: gw, join: [bus: q, {{{words}}}]}}}}\n".replace("{p:", "{q: {on: gw}, p:")
    )
    assert sum("is no name in the bridge of what crosses here" in text for text in found) == count
