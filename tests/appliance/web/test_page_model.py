"""What open pages get of a status: its texts, the rows that weigh most, and only the marks that changed."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.dom.minidom import parseString

import pytest

from appliance.status.terminal import links
from appliance.web import page_model
from appliance.web.page_model import DROPS, ROWS, PageModel, page_fields
from appliance.web.stream import event
from bus.reasons import DROPPED, REJECTED, Reason, kind_of
from bus.vacancy import NO_PEER
from tests.helpers import ROOT
from topologies.loading.loader import load
from topologies.picture.drawing import draw
from topologies.picture.marks import Mark
from topologies.picture.svg import svg

COUNTED = "error-passive: error counters 130 sending, 9 receiving"
FAILING = "frames fail on the wire: look at cable, termination and bit rate"


def row(name: str, received: int = 0, sent: int = 0, **more: Any) -> dict[str, Any]:
    found = {"name": name, "received": received, "sent": sent, "queued": 0, "live": 1}
    return found | {"dropped": {}, "rejected": {}} | more


def rates(received: float, sent: float) -> dict[str, Any]:
    return {"rates": {"received_per_s": received, "sent_per_s": sent}}


def status(*rows: dict[str, Any], hub: str = "p", **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "time_ns": 2,
        "started_ns": 1,
        "topology": "t",
        "gateway": "gw",
        "gateways": {"gw": "10.0.0.1"},
        "product": "1.0",
        "pid": 7,
        "parts": [],
        "hubs": [{"name": hub, "part": f"bus {hub}", "links": list(rows)}],
        "sums": {
            "outside": {
                "received": 5,
                "sent": 6,
                "queued": 7,
                "dropped": {"a": 1, "b": 2, "no peer": 900, "pattern": 70},
                "rejected": {"echo": 8, "crc": 5},
            },
        },
        "memory": {"held_bytes": 1_250_000},
        "candidates": [],
        "brokers": [],
        "taps": [],
        "values": [],
        "events": [],
        "silent": {},
    }
    return found | more


def only_row(one: dict[str, Any]) -> dict[str, Any]:
    (found,) = page_fields(one)["rows"]
    return dict(found)


def test_a_row_has_rates_if_there_are_any_and_all_that_was_dropped() -> None:
    still = only_row(status(row("x", live=2, queued=3, dropped={"a": 1, "b": 2}, rejected={"c": 9})))
    assert (still["in"], still["out"], still["dropped"], still["queued"], still["peers"]) == (
        "0/s",
        "0/s",
        3,
        3,
        2,
    )
    moving = only_row(status(row("x", **rates(12, 3.4))))
    assert (moving["in"], moving["out"], moving["hub"], moving["link"]) == ("12/s", "3.4/s", "p", "x")
    assert "weight" not in moving


@pytest.mark.parametrize(
    ("link", "state", "fault", "sign"),
    [
        ({"state": "up", "fault": "an old one"}, "up", "", "ok"),
        ({"state": "waiting", "fault": "no route"}, "waiting", "no route", "bad"),
        ({"state": "up", "condition": "error-active"}, "error-active", "", "ok"),
        ({"state": "up", "condition": "error-passive"}, "error-passive", FAILING, "wait"),
        ({"state": "up", "condition": COUNTED}, COUNTED, FAILING, "wait"),
        ({"state": "up", "condition": "pump does not answer"}, "pump does not answer", "", "wait"),
        (
            {"state": "up", "condition": "noise: another baud rate?"},
            "noise",
            "noise: another baud rate?",
            "bad",
        ),
        ({"state": "up", "condition": "unknown"}, "up", "", "ok"),
        ({"state": "opening", "condition": ""}, "opening", "", "wait"),
        ({}, "", "", "ok"),
    ],
)
def test_a_row_has_the_state_of_its_link_and_its_fault_unless_it_is_up(
    link: dict[str, Any], state: str, fault: str, sign: str
) -> None:
    found = only_row(status(row("1 can/x", **link)))
    assert (found["state"], found["fault"], found["sign"]) == (state, fault, sign)


@pytest.mark.parametrize(
    ("role", "ready", "settling", "sign"),
    [
        ("active", True, False, "ok"),
        ("parallel", True, False, "ok"),
        ("standby", True, False, "ready"),
        ("orphan", True, False, "wait"),
        ("standby", True, True, "wait"),
        ("standby", False, False, "wait"),
    ],
)
def test_a_role_that_is_well_has_no_sign_of_trouble(
    role: str, ready: bool, settling: bool, sign: str
) -> None:
    one = {"bridge": "b", "role": role, "ready": ready, "settling": settling, "cause": "", "holder": ""}
    (found,) = page_fields(status(candidates=[one | {"epoch": 1, "takeovers": 0}]))["roles"]
    assert found["sign"] == sign


def test_rows_of_one_name_have_each_the_state_of_their_own_hub() -> None:
    one = status(row("1 tcp/x", state="waiting"))
    one["hubs"].append({"name": "q", "part": "bridge q", "links": [row("1 tcp/x", state="up")]})
    assert [(found["hub"], found["state"]) for found in page_fields(one)["rows"]] == [
        ("p", "waiting"),
        ("q", "up"),
    ]


def test_of_many_rows_those_with_trouble_or_traffic_are_shown_in_their_order() -> None:
    rows = [row(f"r{number}", number) for number in range(101)]
    rows[0] |= rates(0.5, 0)
    rows[1] |= rates(0, 0.5)
    for one, state in zip(rows[2:5], ("waiting", "up", ""), strict=True):
        one["state"] = state
    made = page_fields(status(*rows))
    assert made["more_rows"] == 1
    assert [one["link"] for one in made["rows"]] == [f"r{number}" for number in range(101) if number != 3]


def test_what_crossed_both_ways_weighs_alike() -> None:
    rows = [row(f"r{number}", 5, 5) for number in range(100)]
    made = page_fields(status(row("in only", 9), row("out only", 0, 11), *rows))
    names = [one["link"] for one in made["rows"]]
    assert "out only" in names
    assert "in only" not in names


@pytest.mark.parametrize(("totals", "shown"), [({}, ("5", "6")), (rates(1500, 0.25), ("1.5k/s", "0.2/s"))])
def test_totals_are_rates_if_there_are_any(totals: dict[str, Any], shown: tuple[str, str]) -> None:
    one = status()
    one["sums"]["outside"] |= totals
    made = page_fields(one)["totals"]
    assert (made["in"], made["out"]) == shown
    assert (made["queued"], made["dropped"], made["memory"]) == ("7", "3", "1.2 MB")
    assert made["filtered"] == "78"


def test_drops_are_told_by_link_and_reason() -> None:
    one = status(row("x", dropped={"stale": 1}, rejected={"echo": 2}))
    assert page_fields(one)["drops"] == [
        {"link": "p | x", "how": "dropped", "reason": "stale", "count": 1, "filtered": False},
        {"link": "p | x", "how": "rejected", "reason": "echo", "count": 2, "filtered": True},
    ]


@pytest.mark.parametrize("kind", ["policy", "elsewhere", "gone", "trouble"])
@pytest.mark.parametrize(("how", "table"), [("dropped", DROPPED), ("rejected", REJECTED)])
def test_normal_filtering_is_apart_from_drops_on_the_page_and_in_top(
    how: str, table: tuple[Reason, ...], kind: str
) -> None:
    """Of each reason that there is: the frames of a one-way side are no fault, and a full queue is one."""
    words = [reason.word for reason in table if kind_of(reason.word) == kind and reason.word != NO_PEER]
    counts = {word: number for number, word in enumerate(words, 1)}
    one = status(row("x") | {"balance": 0, how: counts})
    one["sums"]["outside"] |= {"dropped": {}, "rejected": {}} | {how: counts}
    made, top = page_fields(one), "\n".join(links(one, None, None))
    normal = sum(counts.values()) if kind in ("policy", "elsewhere") else 0
    lost = sum(counts.values()) - normal if how == "dropped" else 0
    assert [made["totals"][key] for key in ("dropped", "filtered")] == [str(lost), str(normal)]
    assert [made["rows"][0][key] for key in ("dropped", "filtered")] == [lost, normal]
    assert {drop["filtered"] for drop in made["drops"]} <= {bool(normal)}
    assert not counts or (f"filtered: {how} 1" if normal else f"\n      {how} 1") in re.sub(r"\d+", "1", top)


def test_the_verdict_and_its_reasons_are_those_of_the_status() -> None:
    reasons = [{"word": "trouble", "source": "bus plant/dial", "text": "Connection refused"}]
    health = {
        "word": "trouble",
        "line": "trouble: bus plant/dial: Connection refused",
        "reasons": reasons,
        "more": 0,
    }
    made = page_fields(status(health=health))
    assert made["health"] == {key: health[key] for key in ("word", "line", "more")}
    assert made["reasons"] == reasons
    assert page_fields(status())["health"] == {}


def test_brokers_tell_what_they_counted_and_refused() -> None:
    broker = {
        "name": "broker m",
        "urls": ["a", "b"],
        "counts": {"x": 1, "y": 0, "z": 2},
        "rejected": {"full": 3},
    }
    broker |= {"leases": [], "kind": "broker", "part": "broker m"}
    assert page_fields(status(brokers=[broker]))["services"] == [
        {"name": "broker m", "at": "a, b", "counts": "x 1, z 2", "refused": "full 3"}
    ]


@pytest.mark.parametrize(
    ("waiting", "ring", "fill"), [(0, 0, "0 %"), (1, 1, "100 %"), (1, 3, "33 %"), (0, 1, "0 %")]
)
def test_a_tap_tells_how_full_it_is(waiting: int, ring: int, fill: str) -> None:
    tap: dict[str, Any] = dict.fromkeys(("name", "captured", "lost", "written", "files"), 0)
    tap |= {"waiting_bytes": waiting, "ring_bytes": ring, "state": "up", "fault": "No space left on device"}
    (made,) = page_fields(status(taps=[tap]))["taps"]
    assert (made["fill"], made["fault"]) == (fill, "")  # it is up, so the last fault is over
    (made,) = page_fields(status(taps=[tap | {"state": "waiting"}]))["taps"]
    assert made["fault"] == "No space left on device"


def test_the_last_thirty_events_come_latest_first_with_what_they_counted() -> None:
    events = [
        {
            "time_ns": number * 1_000_000_000,
            "kind": "link",
            "source": f"s{number}",
            "cause": "up",
            "counts": {},
        }
        for number in range(32)
    ]
    events[-1]["counts"] = {"a": 1, "b": 2}
    made = page_fields(status(events=events))["events"]
    assert [one["source"] for one in made] == [f"s{number}" for number in range(31, 1, -1)]
    assert made[0]["cause"] == "up (a 1, b 2)"
    assert made[1] | {"source": ""} == {
        "time": "1970-01-01T00:00:30+0000",
        "time_ms": 30_000,
        "kind": "link",
        "source": "",
        "cause": "up",
    }


def test_forty_silent_gateways_are_named_and_all_are_counted() -> None:
    made = page_fields(status(silent={f"g{number}": "c" for number in range(42)}))
    assert (list(made["silent"]), made["more_silent"]) == ([f"g{number}" for number in range(40)], 2)


def test_lists_that_are_cut_say_how_many_more_there_are_and_faults_come_before_filtering() -> None:
    rows = [row(f"r{number}", rejected={"echo": 1}) for number in range(DROPS)]
    alarm = dict.fromkeys(("alarm", "of", "severity", "text", "cause", "number", "by"), "")
    one = alarm | {"stage": "raised", "since_ns": 0, "told": ["ops"], "failed": ["chat"]}
    made = page_fields(status(*rows, row("bad", dropped={"queue full": 3}), alarms=[one] * (ROWS + 5)))
    assert (len(made["drops"]), made["more_drops"], made["drops"][0]["link"]) == (DROPS, 1, "p | bad")
    assert (len(made["alarms"]), made["more_alarms"]) == (ROWS, 5)
    assert made["alarms"][0]["told"] == "ops, not chat: it gave up"


def drawing(*edges: str, **more: Any) -> dict[str, Any]:
    return {"boxes": [], "nodes": [], "edges": [{"id": edge, "other": "w"} for edge in edges]} | more


def test_the_picture_has_a_text_that_differs_when_it_does() -> None:
    one, same, other = (page_fields(status(drawing=drawing(*edges)))["drawn"] for edges in ("ab", "ab", "ac"))
    assert one == same != other
    for more in (
        {"boxes": [{"gateway": "gw", "address": "10.0.0.2"}]},
        {"nodes": [{"id": "bus p", "name": "p", "detail": ""}]},
        {"edges": [{"id": "a", "durable": True}, {"id": "b"}]},
    ):
        assert page_fields(status(drawing=drawing("a", "b", **more)))["drawn"] != one
    assert page_fields(status())["drawn"] == page_fields(status(drawing=None))["drawn"] == ""


def gone(*names: str) -> dict[str, Any]:
    return status(gateways=dict.fromkeys(("gw", "other", "third"), ""), silent=dict.fromkeys(names, "c"))


def test_pages_get_the_marks_that_changed_and_a_new_page_all() -> None:
    model = PageModel()
    assert model.first() == {"marks": {}}
    assert set(model.take(gone())["marks"]) == {"gateway gw", "gateway other", "gateway third"}
    second = model.take(gone("other"))
    assert second["marks"] == {
        "gateway other": {
            "state": "bad",
            "sign": "▲",
            "text": "not seen from here",
            "lines": [],
            "ways": [],
            "word": "not seen from here",
        }
    }
    assert second["pid"] == 7
    third = model.take(gone("other") | {"gateways": {"gw": ""}})
    assert {name: mark["state"] for name, mark in third["marks"].items()} == {
        "gateway other": "idle",
        "gateway third": "idle",
    }
    assert model.first() == third | {"marks": model.first()["marks"]}
    assert set(model.first()["marks"]) == {"gateway gw"}


def test_texts_of_others_reach_no_page_as_they_are() -> None:
    """Those of a status, as rows, marks and a picture."""
    text = "<script>\x1b[2J\r\u202e\x00" + "x" * 10_000
    found = status(
        row(text, fault=text, condition=text, state="waiting"), hub=text, topology=text, silent={text: text}
    )
    data = event(PageModel().take(found)).decode().removeprefix("data: ")
    assert all(one.isprintable() for one in texts_in(json.loads(data)))
    drawing = draw(load(ROOT / "topologies/field.yaml"))
    ids = [node.id for node in drawing.nodes] + [edge.id for edge in drawing.edges]
    parseString(svg(drawing, {name: Mark("bad", text) for name in ids}))


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from (key, *texts_in(one))
    elif isinstance(value, list):
        for one in value:
            yield from texts_in(one)


def test_what_other_gateways_say_of_their_own_things_goes_before_what_is_seen_from_here() -> None:
    model, mark = PageModel(), {"state": "ok", "text": "up", "lines": [], "ways": ["1/s", "2/s"]}
    first = model.take(status(gateways={"gw": "", "other": ""}), {"bus b": mark, "gateway other": mark})
    assert first["marks"]["bus b"] == first["marks"]["gateway other"] == mark
    gone = model.take(status(gateways={"gw": "", "other": ""}))["marks"]
    assert gone["bus b"]["state"] == "idle"
    assert gone["gateway other"]["text"] == "lives"


def test_only_the_rows_that_are_shown_are_worded(monkeypatch: pytest.MonkeyPatch) -> None:
    worded = list[str]()

    def label(one: Mapping[str, Any]) -> str:
        worded.append(one["name"])
        return str(one["name"])

    monkeypatch.setattr(page_model, "label", label)
    many = [row(f"r{number}", received=number) for number in range(3 * ROWS)]
    assert len(page_fields(status(*many))["rows"]) == ROWS
    assert worded == [f"r{number}" for number in range(2 * ROWS, 3 * ROWS)]
