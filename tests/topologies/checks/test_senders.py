"""One identifier has one sender: sides that would take what the gateways have sent."""

import pytest

from topologies.checks.checker import check
from topologies.loading.loader import loads

FILE = """
name: t
gateways: {{a: {{}}, b: {{}}}}
buses:
  x: {{on: a, listen: "tcp://127.0.0.1:19601"}}
  y: {{on: b, listen: "tcp://127.0.0.1:19602"}}
brokers: {{m: {{on: a, listen: "tcp://127.0.0.1:19603"}}}}
bridges:
"""
CAN = "can: {channel: can0}"
SPEAKS = "protocol: {raw: {root: car, %s}}"


def found(*bridges: str) -> list[str]:
    text = FILE.format() + "".join(f"  n{number}: {{{one}}}\n" for number, one in enumerate(bridges))
    return [finding.text for finding in check(loads(text)) if "comes in" in finding.text]


def side(settings: str, medium: str = CAN, wire: str = "") -> str:
    return f"{{{medium}, {SPEAKS % settings}{wire}}}"


def bridge(*sides: str, on: str = "a") -> str:
    return f"on: {on}, join: [{{bus: {{a: x, b: y}}}}, {', '.join(sides)}]" if "[" in on else (
        f"on: {on}, join: [{{bus: {'x' if on == 'a' else 'y'}}}, {', '.join(sides)}]"
    )  # fmt: skip


ALL = "send: all"
LISTS = "receive: [0x100], send: [0x200]"
MET = "receive: ['0x100-0x1ff'], send: [0x150]"
VIRTUAL = "can: {channel: 239.74.163.2, interface: udp_multicast}"


@pytest.mark.parametrize(
    ("bridges", "words"),
    [
        ([bridge(side(ALL))], ""),
        ([bridge(side(MET))], ""),
        ([bridge(side(ALL, VIRTUAL))], "nothing marks our own frames"),
        ([bridge(side(MET, VIRTUAL))], "0x150 leaves and comes in"),
        ([bridge(side(LISTS, VIRTUAL))], ""),
        ([bridge(side("send: [0x200]", VIRTUAL))], ""),
        ([bridge(side(ALL, wire=", segment: w"), on="[a, b]")], "a, b are on this wire"),
        ([bridge(side(LISTS, wire=", segment: w"), on="[a, b]")], ""),
        ([bridge(side("send: [0x200]", wire=", segment: w"), on="[a, b]")], ""),
        ([bridge(side(ALL, wire=", segment: w")), bridge(side(LISTS, wire=", segment: w"), on="b")], "a, b"),
        (
            [bridge(side("receive: [0x1]")), bridge(side("receive: [0x2], send: [0x1]"))],
            "on the same channel",
        ),
        ([bridge(side("receive: [0x1]")), bridge(side("receive: [0x2], send: [0x3]"))], ""),
        ([bridge(side(ALL)), bridge(side(ALL, "can: {channel: can1}"))], ""),
    ],
)
def test_sides_that_would_hear_themselves(bridges: list[str], words: str) -> None:
    texts = found(*bridges)
    assert bool(texts) == bool(words)
    assert words in "".join(texts)


@pytest.mark.parametrize(
    ("on", "lines", "count"),
    [("[a, b]", "send: show", 1), ("[a, b]", "receive: says", 0), ("a", "send: show", 0)],
)
def test_bytes_on_a_pair_that_several_gateways_share(on: str, lines: str, count: int) -> None:
    line = f"{{uart: {{port: /dev/ttyS0, rs485: {{}}}}, segment: pair, protocol: {{lines: {{{lines}}}}}}}"
    bus = "x" if on == "a" else "{a: x, b: y}"
    text = FILE.format() + f"  n: {{on: {on}, join: [{{bus: {bus}}}, {line}]}}\n"
    texts = {finding.text for finding in check(loads(text)) if "bytes name no sender" in finding.text}
    assert len(texts) == count * 2, texts
