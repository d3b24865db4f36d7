"""What a picture shows of a status: the mark of each part, line and wire."""

from typing import Any

import pytest

from appliance.status.overlay import marks, own_marks
from tests.appliance.status.overlay_support import EMPTY, end, hub, row
from topologies.picture.marks import Mark, State


def part(kind: str, name: str, state: str = "up") -> dict[str, Any]:
    return {"id": f"{kind} {name}", "kind": kind, "name": name, "state": state}


def mark_of(one: dict[str, Any], **status: Any) -> Mark:
    """Return the mark of a part."""
    return marks(EMPTY | {"parts": [one]} | status)[one["id"]]


def test_a_gateway_lives_unless_it_is_silent() -> None:
    assert marks(EMPTY | {"gateways": ["a", "b", "c"], "silent": ["c", "a"]}) == {
        "gateway a": Mark("ok", "this gateway"),
        "gateway b": Mark("ok", "lives"),
        "gateway c": Mark("bad", "not seen from here"),
    }


@pytest.mark.parametrize(
    ("word", "state"), [("degraded", "wait"), ("trouble", "bad"), ("of a later one", "wait")]
)
def test_a_gateway_is_as_well_as_it_says(word: str, state: State) -> None:
    ill, well = {"word": word, "line": f"{word}: why"}, {"word": "ok", "line": "ok"}
    fault = f"{word}: why"
    for here, there in ((ill, well), (well, ill), (ill, ill)):
        rows = [{"name": "a", **here}, {"name": "b", **there}]
        status = {"gateways": ["a", "b"], "health": here, "plant": {"gateways": rows}}
        assert marks(EMPTY | status) == {
            "gateway a": Mark(state, "this gateway", fault=fault)
            if here is ill
            else Mark("ok", "this gateway"),
            "gateway b": Mark(state, "lives, not well", fault=fault) if there is ill else Mark("ok", "lives"),
        }


def test_bridges_of_other_gateways_are_as_brokers_hear_of_them() -> None:
    standing = {"a": (True, True), "b": (True, True), "c": (False, True), "d": (False, False)}
    lease = {
        "bridge": "x",
        "candidates": [
            {"name": name, "part": f"bridge x@{name}", "holding": holding, "ready": ready}
            for name, (holding, ready) in standing.items()
        ],
    }
    broker = {"name": "broker m", "part": "broker m", "leases": [lease], "counts": {}}
    assert marks(EMPTY | {"brokers": [broker]}) == {
        "bridge x@b": Mark("ok", "active"),
        "bridge x@c": Mark("ready", "standby"),
        "bridge x@d": Mark("wait", "not ready"),
    }


@pytest.mark.parametrize("kind", ["bus", "bridge"])
@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([], ("0 peers",)),
        ([row("x")], ("1 peer",)),
        ([row("x"), row("y", 2)], ("3 peers",)),
        ([row("x", 1, 7.0, 2), row("y", 0, 8.0, 3), row("z")], ("2 peers", "15/s")),
    ],
)
def test_a_bus_or_bridge_tells_its_peers_and_what_comes_into_it(
    kind: str, rows: list[dict[str, Any]], lines: tuple[str, ...]
) -> None:
    hubs = [hub("p", row("o", 5, 5.0), part="device p"), hub("p", *rows, part=f"{kind} p")]
    assert mark_of(part(kind, "p"), hubs=hubs) == Mark("ok", "", lines)


def test_a_part_is_in_trouble_after_a_while_if_it_is_known_how_long_it_has_been_down() -> None:
    for state in ("opening", "waiting", "closed"):
        for down_ms, sign in ((2999, "wait"), (3000, "bad")):
            found = mark_of(part("bus", "p", state) | {"down_ms": down_ms})
            assert (found.state, found.word) == (sign, state)


@pytest.mark.parametrize(
    ("state", "mark"),
    [
        ("up", Mark("ok", "", ("0 peers",))),
        ("", Mark("ok", "", ("0 peers",))),
        ("opening", Mark("wait", "opening", ("0 peers",))),
        ("waiting", Mark("bad", "waiting", ("0 peers",))),
        ("closed", Mark("bad", "closed", ("0 peers",))),
    ],
)
def test_a_part_that_is_not_up_says_so(state: str, mark: Mark) -> None:
    assert mark_of(part("bus", "p", state)) == mark


@pytest.mark.parametrize(
    ("role", "ready", "state", "mark"),
    [
        ("active", True, "up", Mark("ok", "active", ("epoch 3",))),
        ("active", True, "waiting", Mark("bad", "active, waiting", ("epoch 3",))),
        ("standby", True, "up", Mark("ready", "standby", ("epoch 3",))),
        ("standby", False, "up", Mark("wait", "standby, not ready")),
        ("standby", False, "waiting", Mark("bad", "standby, not ready")),
        ("standby, settling", True, "up", Mark("wait", "standby, settling", ("epoch 3",))),
    ],
)
def test_a_bridge_that_others_may_run_too_tells_its_role(
    role: str, ready: bool, state: str, mark: Mark
) -> None:
    word, _, settling = role.partition(", ")
    candidate = {"bridge": "x", "part": "bridge x", "role": word, "ready": ready, "epoch": 3}
    candidate |= {"settling": True} if settling else {}
    assert mark_of(part("bridge", "x", state), candidates=[candidate]) == mark
    assert mark_of(part("bus", "x"), candidates=[candidate]).word == ""


def test_a_bridge_that_is_not_ready_tells_why() -> None:
    candidate = {"bridge": "x", "part": "bridge x", "role": "standby", "ready": False, "epoch": 3}
    found = mark_of(part("bridge", "x"), candidates=[candidate | {"cause": "link can0 is down"}])
    assert found == Mark("wait", "standby, not ready", fault="link can0 is down")


@pytest.mark.parametrize(
    ("waiting", "ring", "lost", "state", "mark"),
    [
        (50, 200, 0, "up", Mark("ok", "written", ("ring 25 %",))),
        (0, 0, 0, "up", Mark("ok", "written", ("ring 0 %",))),
        (1, 1, 0, "opening", Mark("wait", "written", ("ring 100 %",))),
        (50, 200, 1, "up", Mark("wait", "written", ("ring 25 %", "lost 1"))),
    ],
)
def test_a_tap_tells_how_full_its_ring_is_and_warns_while_it_loses_anything(
    waiting: int, ring: int, lost: int, state: str, mark: Mark
) -> None:
    tap = {
        "name": "t",
        "part": "device t",
        "waiting_bytes": waiting,
        "ring_bytes": ring,
        "lost": lost,
        "state": "written",
    }
    assert mark_of(part("device", "t", state), taps=[tap | {"losing": lost > 0}]) == mark
    assert mark_of(part("device", "t"), taps=[tap]).state == "ok"  # what it lost long ago


def test_a_broker_tells_its_clients_and_another_device_only_its_state() -> None:
    broker = {"name": "broker m", "part": "broker m", "leases": [], "counts": {"connections": 1}}
    assert mark_of(part("broker", "m"), brokers=[broker]) == Mark("ok", "up", ("1 peer",))
    none = broker | {"counts": {"connections": 0}}
    assert mark_of(part("broker", "m"), brokers=[none]) == Mark("ok", "up", ("0 peers",))
    assert mark_of(part("device", "m", ""), brokers=[broker | {"name": "m", "part": "device m"}]) == Mark(
        "ok", "up"
    )
    assert mark_of(part("device", "d", "closed")) == Mark("bad", "closed")


@pytest.mark.parametrize(
    ("ends", "state", "word"),
    [
        ([end("up")], "ok", "up"),
        ([end("up", condition="unknown")], "ok", "up"),
        ([end("up", condition="error-active")], "ok", "error-active"),
        ([end("up", condition="error-passive")], "wait", "error-passive"),
        ([end("up"), end("up", condition="bus-off")], "bad", "bus-off"),
        ([end("up"), end("up", condition="pump does not answer")], "wait", "pump does not answer"),
        ([end("up"), end("waiting"), end("opening")], "bad", "waiting"),
        ([end("up"), end("opening"), end("up")], "wait", "opening"),
        ([end(""), end("up")], "ok", ""),
    ],
)
def test_a_line_is_as_the_worst_of_its_ends(ends: list[dict[str, Any]], state: Any, word: str) -> None:
    (mark,) = marks(EMPTY | {"hubs": [hub("p", *ends)]}).values()
    assert (mark.state, mark.word) == (state, word)


OFF = "after too many errors nothing goes in or out: look at cable, termination and bit rate"


@pytest.mark.parametrize("kind", ["bus", "bridge", "device"])
@pytest.mark.parametrize(
    ("more", "state", "text"),
    [
        ({"condition": "bus-off"}, "bad", f"bus-off: {OFF}"),
        ({"condition": "line/dial: another baud rate?"}, "bad", "noise: line/dial: another baud rate?"),
        ({"condition": "pump does not answer"}, "wait", "pump does not answer"),
        ({"state": "waiting", "fault": "No space left on device"}, "bad", "waiting: No space left on device"),
    ],
)
def test_a_part_is_as_bad_as_its_links_and_tells_why(
    kind: str, more: dict[str, Any], state: str, text: str
) -> None:
    one = part(kind, "p") | more
    found = mark_of(one)
    assert (found.state, found.text.split(" · ")[0]) == (state, text)
    role = {"bridge": "p", "part": one["id"], "role": "active", "ready": True, "epoch": 3}
    held = mark_of(one, candidates=[role])
    assert (held.state, held.text) == (state, f"active, {text} · epoch 3")


@pytest.mark.parametrize("kind", ["bus", "bridge"])
def test_a_part_in_which_a_loop_was_cut_is_bad_and_tells_it(kind: str) -> None:
    one = part(kind, "p")
    looped = hub("p", part=one["id"]) | {"cuts": ["tcp://h:1 from h:2"]}
    found = mark_of(one, hubs=[looped])
    assert (found.state, found.text) == ("bad", "loop: cut: tcp://h:1 from h:2 · 0 peers")
    role = {"bridge": "p", "part": one["id"], "role": "active", "ready": True, "epoch": 3}
    held = mark_of(one, hubs=[looped], candidates=[role])
    assert (held.state, held.text) == ("bad", "loop, active: cut: tcp://h:1 from h:2 · epoch 3")


def test_a_line_with_a_journal_that_cannot_be_written_says_so_and_its_rates_count_once() -> None:
    fault = {"fault": "messages are live only: No space left on device", "kept": []}
    kept, link = end("waiting", received=5, sent=30) | fault, end("up", received=20, sent=30)
    mark = marks(EMPTY | {"hubs": [hub("p", link, kept)]})["e"]
    assert (mark.state, mark.ways) == ("bad", ("20/s", "30/s"))
    assert mark.text.startswith("waiting: messages are live only: No space left on device · ")


def test_a_line_to_a_listener_that_nobody_has_dialled_is_not_green() -> None:
    listens = [end("up", live=live) | {"label": "listen tcp://h:1 (trunk)"} for live in (0, 1)]
    assert marks(EMPTY | {"hubs": [hub("p", listens[0])]})["e"] == Mark("idle", "nobody has dialled")
    assert marks(EMPTY | {"hubs": [hub("p", listens[1])]})["e"].state == "ok"
    assert marks(EMPTY | {"hubs": [hub("p", *listens)]})["e"].state == "ok"
    dials = end("opening", live=0) | {"label": "dial bus b (trunk)"}
    assert marks(EMPTY | {"hubs": [hub("p", listens[0]), hub("q", dials)]})["e"].state == "wait"


def test_a_line_has_the_rates_of_all_its_ends() -> None:
    other = end("up", edge="other")
    hubs = [
        hub("p", end("up", received=2, sent=3), end("up", received=20, sent=30), row("l", 1, 9), other),
        hub("q", end("up", received=200, sent=300)),
    ]
    assert marks(EMPTY | {"hubs": hubs}) == {
        "e": Mark("ok", "up", ("to q 222/s", "from q 333/s"), (), ("222/s", "333/s")),
        "other": Mark("ok", "up"),
    }


def test_a_wire_is_as_the_best_of_the_links_to_it_that_this_gateway_has() -> None:
    nodes = [{"id": "w", "kind": "wire"}, {"id": "v", "kind": "wire"}, {"id": "bus p", "kind": "bus"}]
    edges = [("e", "w"), ("f", "w"), ("g", "w"), ("h", "v"), ("i", "bus p")]
    drawing = {
        "nodes": nodes,
        "edges": [{"id": name, "one": "bus p", "other": other} for name, other in edges],
    }
    ends = [end("waiting"), end("up", "error-active", "f"), end("opening", edge="g"), end("up", edge="i")]
    found = marks(EMPTY | {"drawing": drawing, "hubs": [hub("p", *ends)]})
    assert found["w"] == Mark("ok", "error-active")
    assert not {"v", "bus p"} & set(found)


def test_own_marks_are_of_own_parts_and_of_the_links_that_they_open() -> None:
    edges = [
        {"id": "e", "one": "bus p", "other": "bus far"},
        {"id": "other", "one": "bus far", "other": "bus p"},
    ]
    parts = [{"id": "bus p", "kind": "bus", "name": "p", "state": "up", "fault": ""}]
    hubs = [hub("p", end("up"), end("up", edge="other"))]
    one = EMPTY | {"drawing": {"nodes": [], "edges": edges}, "parts": parts, "hubs": hubs}
    assert set(own_marks(one)) == {"bus p", "e"}
    assert "other" in marks(one)
