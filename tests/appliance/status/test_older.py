"""A status of an older gateway, whose rows have no state, is shown like one of this version."""

from typing import Any

from appliance.status.older import completed
from appliance.status.overlay import marks
from appliance.status.shape import fits
from appliance.status.terminal import page
from bus.advice import advised
from tests.appliance.status.status_support import appliance, broker, lease, status_of
from topologies.picture.marks import Mark

REFUSED = "cannot connect: Connection refused"
ENDS = [
    {"id": f"bridge {bridge}@gw-a/1", "hub": bridge, "row": "1 tcp", "condition": "", **state}
    for bridge, state in (
        ("a", {"state": "waiting", "fault": REFUSED}),
        ("b", {"state": "up", "fault": ""}),
    )
]
LINKS: list[dict[str, Any]] = [
    {"name": "tcp://127.0.0.1:5555", "state": "up"},
    {"name": "tcp:h:9", "state": "waiting", "fault": REFUSED, "losses": 3},
    {"name": "tcp:h:9", "state": "up"},
    {"name": "uart:/dev/ttyS9", "state": "waiting", "fault": "no such file"},
]


def row(name: str, live: int = 1) -> dict[str, Any]:
    counts: dict[str, Any] = dict.fromkeys(("received", "sent", "queued", "balance"), 0)
    return {"name": name, "live": live, "dropped": {}, "rejected": {}} | counts


def hub(name: str, *rows: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "cuts": [], "links": list(rows)}


def older() -> dict[str, Any]:
    """Return what a gateway of an older version says of two bridges that dial one URL."""
    parts = [
        {"id": part, "kind": kind, "name": name, "state": "up", "fault": ""}
        for part, kind, name in (
            ("bus plant", "bus", "plant"),
            ("bridge a@gw-a", "bridge", "a"),
            ("bridge b@gw-a", "bridge", "b"),
            ("broker main", "broker", "main"),
        )
    ]
    hubs = [
        hub("plant", row("tcp://127.0.0.1:5555"), row("a")),
        hub("a", row("1 tcp/tcp:h:9", 0)),
        hub("b", row("1 tcp/tcp:h:9")),
    ]
    counted = broker(lease(("gw-b", True, 5))) | {"counts": {"connections": 2}}
    del counted["kind"], counted["part"], counted["leases"][0]["candidates"][0]["part"]
    more = {"parts": parts, "hubs": hubs, "ends": ENDS, "links": LINKS, "brokers": [counted]}
    return status_of(appliance()) | more


def test_a_status_of_this_version_stays_as_it_is() -> None:
    now = status_of(appliance())
    assert completed(now) == now


def test_top_shows_each_link_with_its_state_and_links_that_never_opened() -> None:
    lines = page(completed(older()), None, None).splitlines()
    rows = {tuple(line.split()[:3:2]): line.split()[-5] for line in lines if "|" in line and "0" in line}
    assert rows[("a", "1")] == "waiting"
    assert rows[("b", "1")] == "up"
    assert rows[("plant", "tcp://127.0.0.1:5555")] == "up"
    assert rows[("plant", "a")] == "a", "the row of a bridge on its bus has no state"
    (never,) = (number for number, line in enumerate(lines) if "ttyS9" in line)
    assert lines[never].split() == ["uart:/dev/ttyS9", "waiting", "0", "0", "0", "0"]
    assert lines[never + 1] == "      no such file"
    assert sum(REFUSED in line for line in lines) == 1


def test_losses_are_those_of_the_link_in_the_same_state() -> None:
    found = {one["name"]: one["links"] for one in completed(older())["hubs"]}
    assert (found["a"][0]["losses"], found["b"][0]["losses"]) == (3, 0)
    assert (found["plant"][0]["losses"], found[""][0]["losses"]) == (0, 0)


def test_an_edge_of_a_bus_is_of_the_row_of_its_link_alone() -> None:
    end = ENDS[1] | {"id": "bus plant > far", "hub": "plant", "row": "tcp://127.0.0.1:5555"}
    (plant, *_) = completed(older() | {"ends": [*ENDS, end]})["hubs"]
    assert [one.get("edges") for one in plant["links"]] == [["bus plant > far"], None]


def test_recorders_and_roles_have_the_part_of_their_name() -> None:
    parts = older()["parts"] + [{"id": "device t", "kind": "device", "name": "t", "state": "up", "fault": ""}]
    tap = {"name": "t", "waiting_bytes": 1, "ring_bytes": 4, "lost": 0, "state": "written"}
    role = {"bridge": "a", "role": "standby", "ready": True, "epoch": 3}
    found = marks(completed(older() | {"parts": parts, "taps": [tap], "candidates": [role]}))
    assert found["device t"] == Mark("ok", "written", ("ring 25 %",))
    assert found["bridge a@gw-a"] == Mark("ready", "standby", ("epoch 3",))


def test_a_picture_has_the_marks_of_parts_and_edges() -> None:
    found = marks(completed(older()))
    assert found["bridge a@gw-a/1"] == Mark("bad", "waiting", fault=advised(REFUSED))
    assert found["bridge b@gw-a/1"] == Mark("ok", "up")
    assert found["bus plant"] == Mark("ok", "", ("2 peers",))
    assert found["bridge fridge@gw-b"] == Mark("ok", "active")
    assert found["broker main"] == Mark("ok", "up", ("2 peers",))


def test_links_of_one_name_that_no_end_tells_apart_have_a_state_each_and_a_row_of_the_past_none() -> None:
    rows = row("plain/tcp:h:9", 0), row("trunk/tcp:h:9"), row("other/tcp:h:9", 0)
    status = older() | {"hubs": [hub("plant", *rows)], "ends": []}
    (plant, _) = completed(status)["hubs"]
    assert [one.get("state") for one in plant["links"]] == ["up", "waiting", None]


def test_it_has_the_shape_of_a_status() -> None:
    assert fits(older())
    assert fits(completed(older()))
