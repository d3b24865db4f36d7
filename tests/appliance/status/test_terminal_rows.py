"""The rows of the page of `top`, number by number: columns, rates, faults, events, and folded lines."""

from typing import Any, get_args

import pytest

from appliance.status.terminal import Order, fold, page, pages
from tests.appliance.status.status_support import broker

LONG = "tcp://" + "gateway-of-the-north." * 5 + "example:25703"


def counts(name: str, received: int = 0, sent: int = 0, **more: Any) -> dict[str, Any]:
    found = {"name": name, "received": received, "sent": sent, "queued": 0, "live": 1, "balance": 0}
    return found | {"dropped": {}, "rejected": {}} | more


def status(*links: dict[str, Any], **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "topology": "t",
        "gateway": "gw",
        "program": "buscoupler",
        "pid": 7,
        "started_ns": 5_000_000_000,
        "time_ns": 6_000_000_000,
        "hubs": [{"name": "p", "links": list(links), "cuts": []}],
        "candidates": [],
        "brokers": [],
        "values": [],
        "events": [],
    }
    return found | more


def lines(one: dict[str, Any], before: dict[str, Any] | None = None, width: int | None = None) -> list[str]:
    return page(one, before, width).splitlines()


@pytest.mark.parametrize(
    ("gateway", "up_s", "head"),
    [
        ("gw", 0, "t on gw: buscoupler, process 7, up 0:00:00"),
        ("", 3599, "t: buscoupler, process 7, up 0:59:59"),
        ("", 97_200, "t: buscoupler, process 7, up 27:00:00"),
    ],
)
def test_the_heading_names_the_process_and_its_time(gateway: str, up_s: int, head: str) -> None:
    one = status(gateway=gateway, time_ns=5_000_000_000 + up_s * 1_000_000_000 + 999_999_999)
    assert lines(one)[0] == head


def test_the_heading_of_a_page_names_its_address_as_another_gateway_may_have_the_port() -> None:
    head = lines(status(gateway="gw", at="http://127.0.0.1:9943"))[0]
    assert head.startswith("t on gw: buscoupler, process 7 at http://127.0.0.1:9943, up ")


def test_links_are_sorted_by_what_the_columns_are_called() -> None:
    busy, still = counts("busy", 9, 1), counts("still", 1, 9)
    head, first, _ = page(status(still, busy), None, None, "from").splitlines()[1:]
    assert {*get_args(Order)} - {"name", "dropped"} == {*head.split()} - {"link", "state", "peers"}
    assert "busy" in first
    assert "still" in page(status(busy, still), None, None, "to").splitlines()[2]


def test_without_an_earlier_status_counts_are_totals() -> None:
    head, row = lines(status(counts("x", 70, 30, queued=4)))[1:]
    assert head.split() == ["link", "state", "peers", "from", "to", "queued"]
    assert row.split() == ["p", "|", "x", "1", "70", "30", "4"]


def test_with_an_earlier_status_they_are_rates_and_a_new_link_counts_from_nothing() -> None:
    before = status(counts("x", 50, 20), counts("anew", 50, 20))
    after = status(counts("x", 70, 30), counts("y", 8, 6), counts("anew", 4, 2), time_ns=8_000_000_000)
    head, *rows = lines(after, before)[1:]
    assert head.split()[3:5] == ["from/s", "to/s"]
    assert [row.split()[4:6] for row in rows] == [["10", "5"], ["4", "3"], ["2", "1"]]


@pytest.mark.parametrize(("width", "room"), [(80, 34), (100, 54), (60, 24), (None, len(f"p | {LONG}"))])
def test_a_long_name_has_what_the_counts_leave_and_at_least_24_columns(width: int | None, room: int) -> None:
    rows = lines(status(counts(LONG, 1, 2)), None, width)
    (row,) = (row for row in rows if row.startswith("  p | tcp"))
    assert row[2 : 2 + room].endswith(LONG[-5:])
    assert row[2 + room : 12 + room].strip() == ""


@pytest.mark.parametrize(("state", "said"), [("up", []), ("waiting", ["      no route"])])
def test_a_fault_is_said_unless_the_link_is_up_again(state: str, said: list[str]) -> None:
    one = status(counts("x", state=state, fault="no route"))
    assert lines(one)[3:] == said


def test_what_a_broker_refused_is_said_if_there_is_anything() -> None:
    main = broker() | {"counts": {"registrations": 12}}
    refusing = main | {"rejected": {"full": 3}}
    found = lines(status(brokers=[main, refusing]))
    assert found[-2] == "  broker main at tcp://10.0.0.11:9942: registrations 12"
    assert found[-1] == "  broker main at tcp://10.0.0.11:9942: registrations 12; refused: 3 full"


def test_the_last_eight_events_are_shown_with_what_they_counted() -> None:
    events = [
        {"time_ns": 0, "kind": "link", "source": f"s{number}", "cause": "up", "counts": {}}
        for number in range(11)
    ]
    events[-1]["counts"] = {"a": 1, "b": 2}
    said = [line.partition("+0000 ")[2] for line in lines(status(events=events)) if "link: " in line]
    assert said == [f"link: s{number}: up" for number in range(3, 10)] + ["link: s10: up (a 1, b 2)"]


@pytest.mark.parametrize(
    ("line", "folded"),
    [
        ("  abcd efgh", ["  abcd efgh"]),
        ("  abcd efg ", ["  abcd efg "]),
        ("  abcd efgh ijkl", ["  abcd efgh", "      ijkl"]),
        ("  abcd efg  ijkl", ["  abcd efg", "      ijkl"]),
        ("           ", ["           "]),
        ("            ", ["            "]),
    ],
)
def test_a_line_of_more_than_eleven_columns_goes_on_below_its_first(line: str, folded: list[str]) -> None:
    assert fold(line, 11) == folded
    assert fold(line, None) == [line]


def test_values_of_devices_have_their_units_and_are_bounded() -> None:
    row = {"pattern": "meter/power", "data": "230.5", "age_ms": 1240, "on": "bridge m, uart", "unit": "W"}
    plain = row | {"pattern": "meter/state", "data": "ok", "unit": ""}
    shown = lines(status(values=[row, plain, {key: row[key] for key in row if key != "unit"}]))
    assert shown[-2:] == [
        "  meter/power 230.5 W, 1.2 s ago (bridge m, uart)",
        "  meter/state ok, 1.2 s ago (bridge m, uart)",
    ]
    kept = {"name": "values", "kind": "readings", "urls": [], "counts": {"left_out": 7}, "rejected": {}}
    many = status(values=[row] * 25, more_values=2, brokers=[kept | {"leases": []}])
    assert lines(many)[-1] == "  and 14 more values"


def test_a_plant_is_shown_once_with_a_line_for_each_gateway() -> None:
    found = {
        "word": "degraded", "line": "degraded: gw-b: runs another file", "more_gateways": 3,
        "gateways": [
            {"name": "gw-a", "address": "h", "state": "answers", "word": "ok", "product": "1", "file": ""},
            {
                "name": "gw-b", "address": "i", "state": "answers", "word": "", "product": "1",
                "file": "abcdef012345", "other_file": True,
            },
            {"name": "gw-c", "address": "j", "state": "silent", "word": "", "line": "refused"},
        ],
    }  # fmt: skip
    one = status(plant=found)
    text = pages([one, one | {"gateway": "gw-b"}], {}, [], None)
    assert text.splitlines()[:5] == [
        f"◌ plant {one['topology']}: degraded: gw-b: runs another file",
        "  gw-a (h): ok, version 1, file -",
        "  gw-b (i): answers, version 1, file abcdef01 (another file)",
        "  gw-c (j): silent: refused",
        "  and 3 more gateways",
    ]
    assert text.count("plant ") == 1
