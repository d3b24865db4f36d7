"""The rules of a side that has none."""

from bridges.policy import PASS_ALL


def test_a_side_without_rules_asks_for_nothing() -> None:
    assert {name: value for name, value in PASS_ALL._asdict().items() if value} == {}
    assert PASS_ALL.replay_s is None  # no limit; 0 would be one
