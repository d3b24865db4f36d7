"""The verdict on a plant: gateways that do not answer, other files, clocks, and two that forward."""

from typing import Any

from appliance.plant.asking import GatewayAnswer
from appliance.plant.note import note_of
from appliance.plant.verdict import CLOCK_MS, LISTED, Seen, judged
from tests.appliance.plant.plant_support import ADDRESSES, heard, role, status

OWN = note_of(status())


def plant(both: frozenset[str] = frozenset(), **seen: Seen) -> dict[str, Any]:
    return judged(OWN, ADDRESSES, {name.replace("_", "-"): one for name, one in seen.items()}, both)


def reasons(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["source"], one["text"]) for one in found["reasons"]]


def test_a_plant_whose_gateways_answer_is_well() -> None:
    found = plant(gw_b=Seen(heard("gw-b")), gw_c=Seen(heard("gw-c", ahead_ms=1999)))
    assert (found["word"], reasons(found)) == ("ok", [])
    assert [row["state"] for row in found["gateways"]] == ["answers"] * 3
    assert [row["here"] for row in found["gateways"]] == [True, False, False]


def test_the_worst_gateway_gives_the_word_and_its_reason() -> None:
    line = {"word": "trouble", "line": "trouble: bus x: Connection refused"}
    found = plant(gw_b=Seen(heard("gw-b", health=line)), gw_c=Seen(heard("gw-c")))
    assert (found["word"], reasons(found)) == ("trouble", [("gw-b", "bus x: Connection refused")])


def test_the_line_of_a_plant_counts_its_own_reasons_and_not_those_of_a_gateway_too() -> None:
    line = {"word": "trouble", "line": "trouble: bus x: Connection refused (and 3 more)"}
    found = plant(gw_b=Seen(heard("gw-b", health=line)), gw_c=Seen(heard("gw-c", health=line)))
    assert found["line"] == "trouble: gw-b: bus x: Connection refused (and 1 more)"


def test_another_file_is_told_with_both_hashes_and_an_older_gateway_has_none() -> None:
    found = plant(gw_b=Seen(heard("gw-b", file="cd" * 32)), gw_c=Seen(heard("gw-c", file="")))
    text = "runs another file of this topology: cdcdcdcd there, abababab on gw-a: "
    text += "`buscoupler deploy` gives all the same"
    assert (found["word"], reasons(found)) == ("degraded", [("gw-b", text)])
    assert [row["other_file"] for row in found["gateways"]] == [False, True, False]


def test_a_gateway_that_does_not_answer_is_trouble_unless_a_broker_hears_it() -> None:
    why = GatewayAnswer("", None, "http://h: Connection refused")
    found = plant(gw_b=Seen(why), gw_c=Seen(why, claims=True))
    assert [one["word"] for one in found["reasons"]] == ["trouble", "degraded"]
    assert [row["state"] for row in found["gateways"]] == ["answers", "silent", "claims"]


def test_one_that_has_gone_is_trouble_and_one_that_was_never_seen_is_no_reason() -> None:
    found = plant(gw_b=Seen(None, was_there=True))
    assert reasons(found) == [("gw-b", "silent: no process answers")]
    assert [row["state"] for row in found["gateways"]] == ["answers", "silent", "unknown"]
    assert plant(gw_b=Seen(None, was_there=True, claims=True))["word"] == "ok"


def test_clocks_that_differ_are_told_but_not_what_the_way_may_have_taken() -> None:
    slow = GatewayAnswer("gw-c", heard("gw-c").note, "", CLOCK_MS + 1500, 1500)
    found = plant(gw_b=Seen(heard("gw-b", ahead_ms=-34_560_000_000)), gw_c=Seen(slow))
    assert reasons(found) == [("gw-b", "its clock is 400 days behind that of gw-a")]


def test_two_that_forward_are_told_at_the_second_look() -> None:
    own = note_of(status(candidates=[role()]))
    seen = {"gw-b": Seen(heard("gw-b", candidates=[role(), role("standby", "x")]))}
    assert judged(own, ADDRESSES, seen)["word"] == "ok"
    found = judged(own, ADDRESSES, seen, frozenset({"motor"}))
    assert reasons(found) == [("bridge motor", "gw-a and gw-b both forward")]
    seen = {"gw-b": Seen(heard("gw-b", candidates=[role("orphan")]))}
    found = judged(own, ADDRESSES, seen, frozenset({"motor"}))
    assert reasons(found) == [("bridge motor", "gw-a and gw-b both forward")]


def test_another_topology_in_its_place_is_trouble() -> None:
    assert reasons(plant(gw_b=Seen(heard("gw-b", topology="y")))) == [("gw-b", "runs another topology: y")]


def test_a_large_plant_is_bounded() -> None:
    many = {"gw-a": ""} | {f"gw{number}": "" for number in range(LISTED + 9)}
    found = judged(OWN, many, {})
    assert (len(found["gateways"]), found["more_gateways"]) == (LISTED, 10)
