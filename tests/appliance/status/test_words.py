"""The words for rows of a status: the state of a link, the title of a service, troubles, and short rates."""

from typing import Any

import pytest

from appliance.status.terminal import roles
from appliance.status.words import (
    counted,
    fault,
    role_word,
    short,
    state_word,
    title,
    troubles,
    unlisted,
)
from bus.report import READINGS

OFF = "after too many errors nothing goes in or out: look at cable, termination and bit rate"


@pytest.mark.parametrize(
    ("row", "word", "why"),
    [
        ({}, "", ""),
        ({"state": "up", "condition": "", "fault": "an old one"}, "up", ""),
        ({"state": "up", "condition": "unknown"}, "up", ""),
        ({"state": "up", "condition": "bus-off", "fault": "x"}, "bus-off", OFF),
        ({"state": "up", "condition": "pump does not answer", "fault": "x"}, "pump does not answer", ""),
        ({"state": "closed", "fault": "in use"}, "closed", "in use"),
        (
            {"state": "up", "condition": "300 bytes, none a frame: another baud rate or protocol?"},
            "noise",
            "300 bytes, none a frame: another baud rate or protocol?",
        ),
    ],
)
def test_a_row_has_the_word_of_its_medium_else_that_of_its_link(
    row: dict[str, Any], word: str, why: str
) -> None:
    assert (state_word(row), fault(row)) == (word, why)


@pytest.mark.parametrize(
    ("kind", "name", "shown"),
    [
        ("broker", "broker main", "broker main"),
        ("page", "status page", "status page"),
        ("upload", "store", "upload store"),
        ("catalog", "catalog", "catalog"),
        ("", "store", "store"),
    ],
)
def test_a_device_that_has_something_to_report_is_called_what_it_is(kind: str, name: str, shown: str) -> None:
    assert title({"kind": kind, "name": name}) == shown


def test_counts_are_named() -> None:
    assert counted({"a": 1, "b c": 2}) == "a 1, b c 2"
    assert counted({}) == ""


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (0.5, "0.5"),
        (5, "5"),
        (9.94, "9.9"),
        (10.4, "10"),
        (999, "999"),
        (1000, "1k"),
        (1234, "1.23k"),
        (123_456, "123k"),
        (998_999, "999k"),
        (999_900, "1000k"),
        (1e6, "1M"),
        (1_250_000, "1.25M"),
        (1e9, "1000M"),
    ],
)
def test_a_rate_is_short(number: float, shown: str) -> None:
    assert short(number) == shown
    assert len(shown) <= 5


def test_values_that_are_left_out_are_those_of_devices_and_those_beyond_a_status() -> None:
    rows = [("broker", {"left_out": 7}), (READINGS, {"left_out": 2}), (READINGS, {})]
    status = {"brokers": [{"kind": kind, "counts": counts} for kind, counts in rows]}
    assert unlisted(status) == 2
    assert unlisted(status | {"more_values": 3}) == 5


def part(state: str, fault: str = "") -> dict[str, Any]:
    return {"parts": [{"id": "bus p", "state": state, "fault": fault}], "candidates": []}


@pytest.mark.parametrize(
    ("state", "fault", "lines"),
    [
        ("", "", []),
        ("up", "", []),
        ("up", "an old one", []),
        ("opening", "", ["bus p: opening"]),
        ("waiting", "no route", ["bus p: waiting: no route"]),
    ],
)
def test_a_part_that_is_not_up_is_a_trouble_with_its_fault(state: str, fault: str, lines: list[str]) -> None:
    assert list(troubles(part(state, fault))) == lines


def test_a_gateway_whose_controller_is_off_is_not_ready() -> None:
    part = {"id": "bridge axis", "state": "up", "condition": "bus-off", "fault": ""}
    assert list(troubles({"parts": [part], "candidates": []})) == [f"bridge axis: bus-off: {OFF}"]
    for condition in ("", "error-passive", "pump does not answer"):
        assert list(troubles({"parts": [part | {"condition": condition}], "candidates": []})) == []


def test_a_standby_is_ready_unless_it_could_not_take_over() -> None:
    roles = [
        {"bridge": name, "ready": ready, "cause": "no lease"} for name, ready in (("x", True), ("y", False))
    ]
    assert list(troubles({"parts": [], "candidates": roles})) == ["bridge y: not ready: no lease"]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"state": "up", "fault": "lost"}, ""),
        ({"state": "waiting", "fault": "lost"}, "lost"),
        ({"state": "opening", "fault": "", "down_ms": 2999}, ""),
        ({"state": "opening", "fault": "", "down_ms": 3000}, "nothing answers"),
    ],
)
def test_a_link_that_is_down_has_a_fault_at_the_latest_after_a_while(row: dict[str, Any], told: str) -> None:
    assert fault(row) == told


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ({"ready": True}, "standby"),
        ({"ready": True, "settling": False}, "standby"),
        ({"ready": True, "settling": True}, "standby, settling"),
        ({"ready": False, "settling": True}, "standby, not ready"),
    ],
)
def test_a_role_says_whether_the_gateway_could_take_over_and_has_settled(
    row: dict[str, Any], word: str
) -> None:
    role = {"role": "standby", "bridge": "x", "epoch": 0, "holder": "", "takeovers": 0, "cause": "c", **row}
    assert role_word(role) == word
    assert next(roles({"candidates": [role]})).startswith(f"  bridge x: {word}, ")
