"""Bridges that carry nothing, and settings of sides that can have no effect, are told."""

import pytest

from tests.topologies.support import GATEWAY, warnings

TWO = (
    GATEWAY
    + "buses: {left: {on: gw, listen: 'tcp://127.0.0.1:1'}, right: {on: gw, listen: 'tcp://127.0.0.1:2'%s}}\n"
)
CAN = "can: {channel: can0%s}"


def told(sides: str, more: str = "", devices: str = "") -> list[str]:
    """Return the warnings about a bridge of these sides, but for those of other checks."""
    text = TWO % more + f"bridges: {{x: {{on: gw, join: [{sides}]}}}}\n{devices}"
    return [one for one in warnings(text) if "no effect" in one or "nothing crosses" in one]


@pytest.mark.parametrize(
    "sides",
    [
        "{bus: left, strip: 1}, {bus: right, strip: 1}",
        "{bus: left, allow: a}, {bus: right, allow: b}",
        "{bus: left, pattern: a/b}, {bus: right, deny: a}",
        "{bus: left, deny: {out: /}}, {bus: right, deny: {out: /}}",
        "{bus: left, deny: /}, {bus: right}",
        "{bus: left, prefix: a}, {bus: right, allow: b}",
        "{bus: left, prefix: a}, {bus: right, prefix: b}",
        f"{{{CAN % ', listen_only: true'}}}, {{bus: right, deny: {{out: /}}}}",
    ],
)
def test_a_bridge_that_carries_nothing_is_told(sides: str) -> None:
    (text,) = told(sides)
    assert text.startswith("nothing crosses this bridge")
    assert told(sides, devices="devices: {t: {on: gw, tap: x, directory: /var/lib/t}}\n") == []


@pytest.mark.parametrize(
    "sides",
    [
        "{bus: left}, {bus: right}",
        "{bus: left, strip: 1}, {bus: right}",
        "{bus: left, allow: a}, {bus: right, allow: a/b}",
        "{bus: left, allow: a/b, deny: a/b/c}, {bus: right, allow: a}",
        "{bus: left, deny: {out: /}}, {bus: right}",
        "{bus: left, prefix: a}, {bus: right, allow: a/b}",
        "{bus: left, strip: a, prefix: b}, {bus: right, strip: c, prefix: b}",
        f"{{{CAN % ', listen_only: true'}}}, {{bus: right}}",
    ],
)
def test_a_bridge_that_carries_something_is_not(sides: str) -> None:
    assert told(sides) == []


@pytest.mark.parametrize(
    ("sides", "what"),
    [
        (
            f"{{{CAN % ''}, shed: oldest, deny: {{out: /}}}}, {{bus: right}}",
            "shed has no effect: nothing leaves",
        ),
        (
            "{bus: left, unchanged: drop, deny: {in: /}}, {bus: right}",
            "unchanged has no effect: nothing enters",
        ),
        (
            "{bus: left, strip: 1, limits: [{frames_per_s: 1, direction: out}]}, {bus: right}",
            "a limit has no",
        ),
        ("{bus: left, limits: [{frames_per_s: 1}], deny: {in: /}}, {bus: right}", "a limit has no effect"),
        ("{bus: left, allow: a, deny: [b, a/b]}, {bus: right}", "deny b has no effect"),
        ("{bus: left, allow: {in: a}, deny: {in: b, out: b}}, {bus: right}", "deny b has no effect"),
        (
            "{bus: left, limits: [{pattern: a, frames_per_s: 1}, {pattern: a/b, frames_per_s: 2}]}, "
            "{bus: right}",
            "this limit of a/b has no effect",
        ),
        ("{url: 'tcp://h:1', late: true}, {bus: right}", "late has no effect"),
        (f"{{{CAN % ''}, late: true}}, {{bus: right}}", "late has no effect"),
    ],
)
def test_a_setting_of_a_side_without_effect_is_told(sides: str, what: str) -> None:
    (text,) = told(sides)
    assert text.startswith(what)


def test_limits_of_other_directions_and_longer_ones_before_shorter_have_an_effect() -> None:
    limits = (
        "{pattern: a/b, frames_per_s: 2}, {pattern: a, frames_per_s: 1}, "
        "{pattern: a/b, frames_per_s: 2, direction: out}"
    )
    assert told(f"{{bus: left, limits: [{limits}]}}, {{bus: right}}") == []


def test_what_is_denied_in_the_direction_in_which_everything_may_cross_has_an_effect() -> None:
    assert told("{bus: left, allow: {in: a}, deny: {out: b}}, {bus: right}") == []


@pytest.mark.parametrize(
    "dial",
    [
        "{url: 'tcp://10.0.0.9:1', trunk: true, durable: {directory: /tmp/j, for: far}}",
        "{url: 'tcp://10.0.0.9:1', trunk: true}",  # its far end may keep a journal
    ],
)
def test_late_may_have_an_effect_where_a_trunk_may_be_durable(dial: str) -> None:
    assert told("{url: 'tcp://h:1', late: true}, {bus: right}", f", dial: {dial}") == []
