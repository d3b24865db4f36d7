"""The gateways that do not answer: each is told with its cause, those that live elsewhere as well."""

from typing import Any

import pytest

from appliance.status.silent import ENDED, UNREADABLE, GatewayName, silent
from tests.appliance.status.status_support import appliance, broker, lease, status_of

GW_B = GatewayName("cold-chain", "gw-b")


def status(*brokers: dict[str, Any]) -> dict[str, Any]:
    return status_of(appliance()) | {"brokers": list(brokers)}


def test_a_gateway_of_the_topology_that_nobody_runs_here_is_silent() -> None:
    said = "cold-chain on gw-b (10.0.0.12): silent: no process of it answers on this machine"
    assert list(silent([status()], {}, {})) == [said]


def test_a_gateway_that_answers_is_not() -> None:
    assert list(silent([status(), status() | {"gateway": "gw-b"}], {}, {})) == []


def test_a_socket_that_nobody_answers_is_of_a_process_that_was_killed_or_hangs() -> None:
    assert list(silent([], {GW_B: ENDED}, {})) == [
        "cold-chain on gw-b: silent: its process ended without closing, or hangs"
    ]


def test_a_gateway_that_was_seen_before_is_silent_since_then() -> None:
    (line,) = silent([status()], {GW_B: ENDED}, {GW_B: 1_700_000_000_000_000_000})
    assert line.startswith("cold-chain on gw-b (10.0.0.12): silent since ")


def test_a_gateway_of_another_version_runs() -> None:
    """It does not count as silent, also if an earlier process of it was seen."""
    for seen in ({}, {GW_B: 1_700_000_000_000_000_000}):
        (line,) = silent([status()], {GW_B: UNREADABLE}, seen)
        assert "gw-b (10.0.0.12): runs, and answers as another version does" in line


def test_a_gateway_whose_claims_a_broker_hears_runs_elsewhere() -> None:
    (line,) = silent([status(broker(lease(("gw-b", True, 40))))], {}, {})
    assert "not on this machine" in line
    (line,) = silent([status(broker(lease(("gw-b", True, 40_000))))], {}, {})
    assert "silent" in line


def test_gateways_with_one_cause_share_a_line() -> None:
    both = status() | {"gateway": "", "topology": "cold-chain"}
    (line,) = silent([both], {}, {})
    assert "gw-a (10.0.0.11), gw-b (10.0.0.12)" in line


@pytest.mark.parametrize(("silent_ms", "heard"), [(9_999, True), (10_000, False)])
def test_a_claim_proves_life_for_ten_seconds(silent_ms: int, heard: bool) -> None:
    (line,) = silent([status(broker(lease(("gw-b", True, silent_ms))))], {}, {})
    assert ("a broker here hears its claims" in line) is heard
