"""Of all announcements those of the own system count, proven where there are keys, and each once."""

from appliance.plant.announcement import announced
from appliance.plant.hearing import Hearing
from appliance.plant.note import note_of
from bus.announcements import Announcement, announce, json_of
from bus.keys import Keyring
from tests.appliance.plant.plant_support import status

RING = Keyring([b"1" * 32])
KNOWN = frozenset({"gw-a", "gw-b"})


def frame(gateway: str = "gw-b", time_ns: int = 10**18, ring: Keyring | None = None, **more: object) -> bytes:
    return announced(note_of(status(gateway, time_ns=time_ns, **more)), {}, ring)


def hearing(ring: Keyring | None = None) -> Hearing:
    made = Hearing("gw-a")
    made.follow("hall", KNOWN, ring)
    return made


def test_the_newest_announcement_of_a_gateway_is_kept_with_its_clock() -> None:
    here = hearing()
    for time_ns, product in ((10**18, "1"), (10**18 + 5, "2"), (10**18 + 2, "3")):
        assert isinstance(
            here.hear(frame(time_ns=time_ns, product=product), 0.0, 10**18 - 3_000_000_000), Announcement
        )
    assert here.said["gw-b"].note["product"] == "2"
    assert here.said["gw-b"].ahead_ms == 3000


def test_a_clock_is_judged_by_the_announcement_that_waited_least_and_one_that_went_back_in_the_end() -> None:
    here, found = hearing(), list[int]()
    for waited_ms in (100, 4000, 3500, 4000, 4000):
        here.hear(frame(time_ns=10**18 + len(found)), 0.0, 10**18 + waited_ms * 1_000_000)
        found.append(here.said["gw-b"].ahead_ms)
    assert [round(one, -2) for one in found] == [-100, -100, -100, -3500, -3500]


def test_our_own_and_those_of_other_systems_are_nobodys_fault_and_unknown_gateways_are_passed_on() -> None:
    here = hearing()
    assert here.hear(frame("gw-a"), 0.0, 0) == here.hear(frame(topology="yard"), 0.0, 0) == ""
    assert isinstance(here.hear(frame("gw-new"), 0.0, 0), Announcement)
    assert here.hear(announce((1, 2), b"{}"), 0.0, 0) == "malformed"
    other = announce((0xAA5B7E09, 0xEF5C6CB8), json_of({"gateway": "gw-b", "topology": "hall"}))
    assert here.hear(other, 0.0, 0) == "malformed"
    assert here.said == {}


def test_with_keys_only_what_they_prove_counts_and_nobody_plays_one_again_that_has_died() -> None:
    here = hearing(RING)
    assert here.hear(frame(), 0.0, 0) == "unsigned"
    assert here.hear(frame(ring=Keyring([b"2" * 32])), 0.0, 0) == "forged"
    old = frame(ring=RING)
    assert isinstance(here.hear(old, 0.0, 0), Announcement)
    here.hear(old, 1e6, 0)
    assert here.said["gw-b"].at_s == 0.0


def test_two_processes_of_one_name_are_told_apart_and_one_that_was_started_again_is_not_two() -> None:
    here = hearing()
    for second, (started_ns, page) in enumerate(((1, "http://b"), (1, "http://b"), (2, "http://c"), (2, ""))):
        here.hear(frame(time_ns=10**18 + second, started_ns=started_ns, page=page), float(second), 0)
    assert list(here.twins(4.0, 12.5)) == []
    here.hear(frame(time_ns=10**18, started_ns=1, page="http://b"), 5.0, 0)  # it was on its way for long
    assert list(here.twins(5.0, 12.5)) == []
    for name in ("gw-a", "gw-b"):  # also of our own name
        for second in range(10, 14):
            life = second % 2
            said = frame(name, time_ns=10**18 + second, started_ns=3 + life, page=f"http://{life}")
            here.hear(said, float(second), 0)
    assert list(here.twins(13.0, 12.5)) == [(name, ["http://0", "http://1"]) for name in ("gw-b", "gw-a")]
    assert [bool(list(here.twins(now_s, 12.5))) for now_s in (24.25, 24.5, 100.0)] == [True, False, False]
    assert "gw-a" not in here.said


def test_a_gateway_that_leaves_the_file_is_forgotten() -> None:
    here = hearing()
    here.hear(frame(), 0.0, 0)
    here.follow("hall", frozenset({"gw-a"}), None)
    assert here.said == {}
