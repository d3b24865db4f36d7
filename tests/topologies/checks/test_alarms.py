"""Alarms that cannot work are refused, with what to write instead; those that can are not."""

import pytest

from tests.topologies.support import errors, said, warnings

PLANT = """\
name: t
gateways: {{a: {{address: 10.0.0.1, node: 1}}, b: {{address: 10.0.0.2, node: 2}}}}
buses:
  p: {{on: a, listen: {{url: "tcp://10.0.0.1:5", trunk: true}}}}
  q: {{on: b, {trunks}}}
  r: {{on: a}}
bridges: {{x: {{on: a, join: [bus: p, can: {{channel: can0}}]}}}}
alarms: {{one: {{{alarm}}}}}
outlets: {{o: {outlet}}}
"""
HOOK = '{webhook: "http://h/x"}'


def plant(alarm: str, trunks: str = "trunks: p", outlet: str = HOOK) -> str:
    return PLANT.format(alarm=alarm, trunks=trunks, outlet=outlet)


@pytest.mark.parametrize(
    ("alarm", "words"),
    [
        ("bus: p", "state what raises it"),
        ("above: 8", "state the bus of its frames, or a link"),
        ("bus: p, above: 8, missing_s: 5", "missing_s is about the whole pattern"),
        ("bus: p, missing_s: 5, hysteresis: 1", "hysteresis is for above"),
        ("link: x, missing_s: 5, hysteresis: 1", "hysteresis is for above"),
        ("bus: p, above: 8, below: 2, hysteresis: 4", "is no room for twice the hysteresis (8)"),
        ("bus: p, above: 2, below: 8", "is no room for a value"),
        ("bus: p, changed_by: 3, hysteresis: 3", "less than changed_by (3)"),
        ("link: x, of: dropped, above: 0, hysteresis: 1", "a link has no value below 0"),
        ("bus: p, changed_by: 0", "changed_by is above 0"),
        ("bus: p, above: 8, of: in", "of is for a link"),
        ("link: x, above: 8", "need of"),
        ("link: x, of: in, missing_s: 5", "need of"),
        ("link: x, stale_s: 5", "instead of pattern and stale_s"),
        ("bus: p, above: 8, notify: mail", 'no outlet "mail"'),
        ("bus: nowhere, above: 8", 'no bus "nowhere"'),
    ],
)
def test_settings_that_do_not_go_together_are_refused(alarm: str, words: str) -> None:
    assert words in said(plant(alarm))


@pytest.mark.parametrize(
    ("outlet", "words"),
    [
        ("{webhook: ftp://h/x}", "write http://HOST/PATH"),
        ("{webhook: http://u:p@h/x}", "use token_file"),
        ("{webhook: http://h/x, ca_file: x}", "https:// only"),
        ("{command: [siren]}", "full path"),
        ("{mail: ops, from: a@b.c}", "no address of mail"),
        ("{mail: 'a@b.c', from: 'a@b.c', server: 'http://h'}", "write smtp://HOST"),
        ("{mail: 'a@b.c', from: 'a@b.c', user: u}", "given together"),
        ("{webhook: http://h/x, command: [/x]}", "an outlet is one of"),
        ("{webhook: http://h/x, states: on}", "raised or acknowledged or cleared"),
    ],
)
def test_outlets_that_cannot_work_are_refused(outlet: str, words: str) -> None:
    assert words in said(plant("bus: p, above: 8, notify: o", outlet=outlet))


def test_two_buses_of_one_gateway_are_one_too_many() -> None:
    assert errors(plant("bus: [p, r], above: 8, notify: o")) == [
        "buses p and r of alarm one both run on a: name one of them"
    ]


@pytest.mark.parametrize(
    ("link", "words"),
    [("y", 'no part "y"'), ("x/uart", 'bridge x has no side "uart": there are 0, 1, bus, can')],
)
def test_a_link_must_be_there(link: str, words: str) -> None:
    assert words in errors(plant(f"link: {link}, missing_s: 5, notify: o"))[0]


def test_gateways_that_cannot_hear_each_other_would_both_tell() -> None:
    (text,) = warnings(plant("bus: [p, q], above: 8, notify: o", trunks="listen: tcp://10.0.0.2:5"))
    assert "would tell people twice" in text
    assert "no alarm has outlet o" in warnings(plant("bus: p, above: 8"))[0]


@pytest.mark.parametrize(
    "alarm",
    [
        "bus: [p, q], above: 8, below: 2, stale_s: 9",
        "link: x/can, missing_s: 5",
        "link: x/1, of: in, above: 5",
    ],
)
def test_others_are_fine(alarm: str) -> None:
    text = plant(f"{alarm}, notify: o")
    assert errors(text) == []
    assert not [one for one in warnings(text) if "alarm" in one]
