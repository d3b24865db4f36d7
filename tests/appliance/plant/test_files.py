"""Who runs another file than most is told so, and not while a roll-out is under way."""

import pytest

from appliance.plant.files import LONG_S, FileWatch, differing

NEW, OLD = "a" * 64, "b" * 64


@pytest.mark.parametrize(
    ("own", "others", "told"),
    [
        (NEW, {}, ""),
        (NEW, {"gw-b": NEW, "gw-c": NEW, "gw-d": OLD}, ""),
        (NEW, {"gw-b": ""}, ""),
        ("", {"gw-b": OLD}, ""),
        (NEW, {"gw-b": OLD}, "another one of the topology than on gw-b: aaaaaaaa here, bbbbbbbb there"),
        (NEW, {"gw-b": OLD, "gw-c": NEW, "gw-d": OLD}, "another one of the topology than on gw-b and 1"),
        (NEW, {"gw-b": OLD, "gw-c": OLD}, "another one of the topology than on gw-b and 1 more: "),
    ],
)  # fmt: skip
def test_who_has_not_the_file_of_most_is_told(own: str, others: dict[str, str], told: str) -> None:
    found = differing(own, others)
    assert found.startswith(told)
    assert bool(found) == bool(told)


def test_another_file_counts_after_a_while_and_anew_after_it_was_the_same() -> None:
    watch, told = FileWatch(), list[float]()
    for now_s in range(0, 3600, 60):
        others = {"gw-b": NEW if now_s == 1200 else OLD}
        told += [now_s for one in watch.concerns(NEW, others, now_s) if one.word == "degraded"]
    assert told == [*range(600, 1200, 60), *range(1260 + int(LONG_S), 3600, 60)]
