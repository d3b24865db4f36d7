"""The page of `top`: what it shows, and that it fits 80 and 120 columns."""

from typing import Any

import pytest

from appliance.status.terminal import fold, key_of, page, pages, plant, shorten
from bus.wire.frame import pack
from tests.appliance.status.status_support import appliance, broker, lease, status_of
from tests.helpers.peers import Ear

LONG = "tcp://gateway-of-the-northern-cold-store.plant.example.com:25703"


def test_rates_are_of_the_time_between_two_snapshots() -> None:
    running = appliance()
    hub = running.parts["bus plant"].hub
    near, far = Ear(hub), Ear(hub)
    before = status_of(running)
    near.say(*[pack(1, (7,))] * 50)
    far.stats.offered += 2
    far.stats.drop("stale", 2)
    after = status_of(running)
    after["time_ns"] = before["time_ns"] + 500_000_000
    lines = page(after, before, 80).splitlines()
    assert any(line.split()[-4:] == ["2", "100", "100", "0"] for line in lines)
    assert any("dropped 2 stale" in line for line in lines)
    assert not any("NOT balance" in line for line in lines)
    far.stats.offered += 1
    assert "does NOT balance" in page(status_of(running), None, 80)


def test_counts_stay_when_a_peer_goes() -> None:
    running = appliance()
    hub = running.parts["bus plant"].hub
    near, far = Ear(hub), Ear(hub)
    near.say(*[pack(1, (7,))] * 50)
    far.close()
    near.close()
    assert any(
        line.split()[-4:] == ["0", "50", "50", "0"]
        for line in page(status_of(running), None, 80).splitlines()
    )


def test_a_link_that_never_had_a_peer_is_there_with_its_state() -> None:
    text = page(status_of(appliance()), None, 80)
    row = next(line for line in text.splitlines() if "tcp://127.0.0.1:0" in line)
    assert row.split()[:2] == ["plant", "|"]
    assert row.split()[4:] == ["closed", "0", "0", "0", "0"]


def test_links_of_one_name_have_each_their_own_state_and_one_that_has_gone_has_none() -> None:
    """Two bridges that dial one URL: A waits, B is up."""
    status = status_of(appliance())
    counts: dict[str, Any] = dict.fromkeys(("received", "sent", "queued", "live", "balance"), 0) | {
        "dropped": {},
        "rejected": {},
    }
    states: dict[str, tuple[int, dict[str, str]]] = {
        "A": (1, {"state": "waiting", "condition": "", "fault": "refused"}),
        "B": (0, {"state": "up", "fault": "refused"}),
        "C": (0, {}),
    }
    status["hubs"] = [
        {"name": hub, "cuts": [], "links": [counts | {"name": "1 tcp/tcp:h:5", "live": live} | state]}
        for hub, (live, state) in states.items()
    ]
    lines = page(status, None, 120).splitlines()
    rows = [line.split() for line in lines if "tcp:h:5" in line]
    assert [(row[0], row[4]) for row in rows] == [("A", "waiting"), ("B", "up"), ("C", "0")]
    assert lines[lines.index(next(line for line in lines if "A |" in line)) + 1] == "      refused"
    assert sum("refused" in line for line in lines) == 1


def test_roles_brokers_and_leases_are_shown() -> None:
    status = status_of(appliance())
    status["candidates"] = [
        {
            "bridge": "fridge",
            "pattern": [7],
            "name": "gw-a",
            "role": "standby",
            "ready": True,
            "cause": "started",
            "epoch": 3,
            "holder": "gw-b",
            "takeovers": 2,
            "brokers": ["up"],
        }
    ]
    status["brokers"] = [broker(lease(("gw-a", False, 20), ("gw-b", True, 30), holder="gw-b", epoch=3))]
    text = page(status, None, None)
    assert "bridge fridge: standby, epoch 3, holder gw-b, takeovers 2: started" in text
    assert "broker main at tcp://10.0.0.11:9942: registrations 12" in text
    assert "lease of fridge: holder gw-b, epoch 3" in text
    assert "gw-a: ready, order 0, heard 20 ms ago" in text
    assert "gw-b: forwards, order 1, heard 30 ms ago" in text


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    running = appliance()
    status = status_of(running)
    one: dict[str, Any] = dict.fromkeys(("received", "sent", "queued", "live", "balance"), 987_654_321_000)
    one |= {
        "dropped": {"a reason with many words": 12_345_678, "stale": 3, "queue full": 9_999_999},
        "rejected": {},
    }
    one |= {"state": "waiting", "fault": f"{LONG}: connection refused: " + "x" * 90}
    status["hubs"][0]["links"] = [one | {"name": f"plain/{LONG}"}]
    status["brokers"] = [broker(*[lease(("gw-a" * 20, True, 5), holder="gw-a" * 20)] * 3)]
    status["events"] = [
        {"time_ns": 0, "kind": "link", "source": "gw-a/" + LONG, "cause": "lost " * 20, "counts": {}}
    ]
    text = pages([status], {}, ["cold-chain on gw-b: silent: " + "word " * 30], width)
    assert max(map(len, text.splitlines())) <= width
    assert LONG in pages([status], {}, [], None), "a pipe gets whole names"


def long_everywhere() -> dict[str, Any]:
    """Return a status with long names and numbers in every section."""
    status, name = status_of(appliance()), "the-northern-cold-store-" * 4
    counts: dict[str, Any] = dict.fromkeys(("received", "sent", "queued", "live"), 987_654_321_000)
    counts |= {"balance": 12, "dropped": {name: 1_234_567_890}, "rejected": {name: 2, "stale": 3}}
    status |= {"topology": name, "gateway": name}
    row = {"name": LONG, "state": "waiting", "condition": "error-passive", "fault": name * 2}
    status["hubs"][0] |= {"name": name, "cuts": [f"{name}/{LONG}"], "links": [counts | row]}
    role = {"bridge": name, "lease": f"{name}group", "role": "standby", "ready": False, "cause": name}
    status["candidates"] = [role | {"epoch": 4_294_967_295, "holder": name, "takeovers": 99_999}]
    crowded = broker(lease((name, False, 123_456_789), holder=name))
    crowded |= {"name": name, "urls": [LONG] * 3, "rejected": {name: 5, "slow reader": 7}}
    status["brokers"] = [crowded]
    event = {"time_ns": 0, "kind": "failover", "source": f"{name}/{name}", "cause": name, "counts": {name: 9}}
    status["events"] = [event]
    return status


@pytest.mark.parametrize("width", [40, 80])
def test_every_section_fits_the_terminal_and_what_is_left_out_has_a_mark(width: int) -> None:
    status, silent = long_everywhere(), [f"{'cold-chain ' * 9}: silent: {'word' * 30}"]
    lines = pages([status], {}, silent, width).splitlines()
    assert max(map(len, lines)) <= width
    whole = "".join(pages([status], {}, silent, None).split())
    shown = "".join("".join(lines).split())
    before, *rest = shown.split("…")
    assert len(rest) == 1, "only the label of the row is shortened"
    assert whole.startswith(before)
    assert whole.endswith(rest[0])


def test_control_characters_of_peers_do_not_reach_the_terminal() -> None:
    status = status_of(appliance())
    status["hubs"][0]["links"][0] |= {"name": "tcp://\x1b[2J\u202e"}
    assert "\x1b" not in pages([status], {}, [], 80)
    assert "\u202e" not in pages([status], {}, [], 80)


def test_a_process_started_anew_is_another_one() -> None:
    status = status_of(appliance())
    assert key_of(status) != key_of(status | {"started_ns": 1})


def test_names_are_shortened_in_the_middle() -> None:
    assert shorten("tcp://127.0.0.1:5555", 11) == "tcp:/…:5555"
    assert shorten("short", 11) == "short"


def test_a_word_longer_than_the_line_is_cut() -> None:
    assert all(len(line) <= 20 for line in fold("    " + "x" * 100, 20))


def test_the_heading_says_for_how_long_a_process_has_been_up() -> None:
    status = status_of(appliance())
    up_ns = (27 * 3600 + 4 * 60 + 9) * 1_000_000_000
    text = page(status | {"started_ns": 0, "time_ns": up_ns}, None, None)
    assert text.splitlines()[0] == "● ok"
    assert text.splitlines()[1].endswith("up 27:04:09")


@pytest.mark.parametrize("count", [3, 24, 100])
def test_of_many_gateways_those_that_are_not_well_have_a_line_with_its_cause(count: int) -> None:
    well = {"address": "h", "state": "answers", "word": "ok", "line": "ok", "other_file": False}
    rows = [{**well, "name": f"g{number}"} for number in range(count)]
    rows[1] |= {"word": "trouble", "line": "trouble: m: gone"}
    rows[2] |= {"state": "silent", "word": "", "line": "not heard"}
    found = {"word": "trouble", "line": "trouble: g1: m: gone", "gateways": rows, "more_gateways": 0}
    head, *lines = plant({"topology": "t", "plant": found})
    assert head == "▲ plant t: trouble: g1: m: gone"
    assert "  g1 (h): trouble: m: gone, version , file -" in lines
    assert "  g2 (h): silent: not heard" in lines
    assert len(lines) == (3 if count == 100 else count)
    assert (lines[-1] == "  and 98 gateways in good health") == (count == 100)
