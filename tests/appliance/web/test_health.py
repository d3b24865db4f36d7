"""Whether a gateway is ready: every link is up, and it can take part in each failover."""

from typing import Any

import pytest

from appliance.web.health import troubles


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


def test_a_standby_is_ready_unless_it_could_not_take_over() -> None:
    roles = [
        {"bridge": name, "ready": ready, "cause": "no lease"} for name, ready in (("x", True), ("y", False))
    ]
    assert list(troubles({"parts": [], "candidates": roles})) == ["bridge y: not ready: no lease"]
