"""The outcome of a reload, as it crosses the local socket."""

import pytest

from appliance.reload.outcome import Outcome, Request, pack, restart, unpack_outcome, unpack_request


def outcome(failed: tuple[str, ...] = (), error: str = "") -> Outcome:
    return Outcome("t", "gw", ("p",), "/t.yaml", ("bus p: new",), failed, error)


@pytest.mark.parametrize(
    ("one", "good"),
    [
        (outcome(), True),
        (outcome(error="line 3"), False),
        (outcome(failed=("bus p",)), False),
        (outcome(("bus p",), "line 3"), False),
    ],
)
def test_it_is_good_if_the_file_was_taken_and_all_could_be_opened(one: Outcome, good: bool) -> None:
    assert one.good is good
    assert unpack_outcome(pack(one)) == one
    assert one.title == "t on gw (p)"


def test_a_process_is_meant_unless_it_says_otherwise() -> None:
    assert outcome().meant
    assert not unpack_outcome(pack(Outcome("t", "gw", (), "/t.yaml", meant=False))).meant
    assert not unpack_outcome(b"{}").meant


def test_a_request_names_a_file_and_a_gateway_or_all() -> None:
    for request in (Request(), Request("/t.yaml"), Request(None, "gw")):
        assert unpack_request(pack(request)) == request


def test_another_name_of_a_topology_needs_a_restart() -> None:
    assert restart("p", "p") == ""
    assert restart("p", "q").startswith("the name is q instead of p: its run directory has the old name")
