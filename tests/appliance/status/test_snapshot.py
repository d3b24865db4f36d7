"""The snapshot: each link has one row with its counts and its state, whatever other links are called."""

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from appliance.status.candidates import twins as of_one_name
from appliance.status.overlay import marks
from appliance.status.rows import bare
from appliance.status.snapshot import snapshot
from appliance.status.terminal import page
from appliance.status.view import Besides
from appliance.web.metrics import render
from appliance.web.page_model import page_fields
from bus.hub import Hub
from bus.leases.group import CandidateStatus, Lease
from bus.report import Report
from bus.transports.links import bus_link
from tests.appliance.status.status_support import appliance, status_of
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TWINS = """\
name: twins
gateways: {{gw: {{address: 127.0.0.1, status: {{serve: false}}}}}}
buses:
  east: {{on: gw, listen: "tcp://127.0.0.1:0"}}
  west: {{on: gw, listen: "tcp://127.0.0.1:0"}}
bridges:
  a: {{on: gw, join: [{{bus: east}}, {{tcp: {{host: 127.0.0.1, port: {0}}}}}]}}
  b: {{on: gw, join: [{{bus: west}}, {{tcp: {{host: 127.0.0.1, port: {0}}}}}]}}
  never: {{on: gw, join: [{{bus: east}}, {{uart: {{port: /dev/no-such-line}}}}]}}
"""
BUS = """\
name: t
gateways: {gw: {address: 127.0.0.1, status: {serve: false}}}
buses: {b: {on: gw, listen: [%s]%s}}
"""
Rows = Mapping[tuple[str, str], Mapping[str, Any]]


def rows_of(status: Mapping[str, Any]) -> Rows:
    return {(hub["name"], row["name"]): row for hub in status["hubs"] for row in hub["links"]}


async def twins() -> tuple[dict[str, Any], dict[tuple[str, str], str]]:
    """Return a status in which one of two bridges has lost its peer, and the state of each by its row."""
    accepted = list[asyncio.StreamWriter]()
    server = await asyncio.start_server(lambda _, writer: accepted.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    appliance = appliance_of(loads(TWINS.format(port), "t.yaml"), "gw")
    links = {
        (name, f"1 tcp/tcp:127.0.0.1:{port}"): appliance.parts[f"bridge {name}"].links[0] for name in "ab"
    }
    (never,) = appliance.parts["bridge never"].links
    appliance.open(asyncio.get_running_loop())
    try:
        await until(lambda: len(accepted) == 2 and all(link.state == "up" for link in links.values()))
        server.close()
        accepted[0].close()
        await until(  # each is tried again now and then
            lambda: {link.state for link in links.values()} == {"up", never.state} == {"up", "waiting"}
        )
        appliance.monitor.scan(0.0)
        return status_of(appliance), {row: link.state for row, link in links.items()}
    finally:
        appliance.close()
        accepted[1].close()


async def test_two_bridges_that_dial_one_url_have_each_its_own_state_everywhere() -> None:
    status, states = await twins()
    found = rows_of(status)
    assert {row: found[row]["state"] for row in states} == states
    lines = page(status, None, None).splitlines()
    shown = [line.split() for line in lines if " tcp:" in line and "listen" not in line]
    of_people = {(hub, bare(name)): state for (hub, name), state in states.items()}
    assert {(words[0], words[2]): words[3] for words in shown if words[1:2] == ["|"]} == of_people
    model = {(row["hub"], row["link"]): row["state"] for row in page_fields(status)["rows"]}
    assert {row: model[row] for row in of_people} == of_people
    picture = marks(status)
    assert {row: picture[f"bridge {row[0]}@gw/1"].word for row in states} == states
    metrics = render(status, "text/plain")[0].decode()
    for (hub, link), state in states.items():
        assert f'buscoupler_link_up{{hub="{hub}",link="{link}"}} {float(state == "up")}' in metrics
    events = {event["source"]: event["cause"].partition(":")[0] for event in status["events"]}
    assert {row: events[f"gw/{row[0]}/{row[1]}"] for row in of_people} == of_people


def test_of_alarms_that_are_called_the_same_one_that_is_raised_counts() -> None:
    row = {"alarm": "warm", "of": "gw/x", "severity": "warning"}
    status = status_of(appliance()) | {"alarms": [{**row, "stage": "raised"}, {**row, "stage": "cleared"}]}
    labels = '{alarm="warm",of="gw/x",severity="warning"}'
    assert f"buscoupler_alarm{labels} 1.0" in render(status, "text/plain")[0].decode()


async def test_a_device_that_was_never_there_has_a_row_on_the_page_in_top_and_in_metrics() -> None:
    status, _ = await twins()
    row = rows_of(status)["never", "1 uart/uart:/dev/no-such-line"]
    assert (row["state"], row["live"], row["gone"], row["received"], row["balance"]) == (
        "waiting",
        0,
        0,
        0,
        0,
    )
    assert "No such file" in row["fault"]
    assert row["edges"] == ["bridge never@gw/1"]
    shown = next(row for row in page_fields(status)["rows"] if "uart" in row["link"])
    assert (shown["hub"], shown["state"], shown["peers"]) == ("never", "waiting", 0)
    assert "never | uart:/dev/no-such-line " in page(status, None, None)
    metrics = render(status, "text/plain")[0].decode()
    labels = 'hub="never",link="1 uart/uart:/dev/no-such-line"'
    assert f"buscoupler_link_up{{{labels}}} 0.0" in metrics
    assert f"buscoupler_messages_received_total{{{labels}}} 0.0" in metrics


async def test_an_address_that_was_never_bound_has_a_row_until_it_is() -> None:
    other, port = Hub(), free_port()
    first, url = "tcp://127.0.0.1:0", f"tcp://127.0.0.1:{port}"
    taken = bus_link(url, "listen")
    taken.open(other, asyncio.get_running_loop())
    appliance = appliance_of(loads(BUS % (first, ""), "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        changed = loads(BUS % (f"{first}, {url}", ""), "t.yaml")
        reloaded(appliance, changed)
        status = status_of(appliance)
        row = rows_of(status)["b", url]
        assert (row["state"], row["live"]) == ("closed", 0)
        assert "in use" in row["fault"]
        assert status["parts"][0]["state"] == "closed"
        taken.close()
        reloaded(appliance, changed)
        assert rows_of(status_of(appliance))["b", url]["state"] == "up"
    finally:
        appliance.close()


async def test_a_device_that_could_not_be_opened_says_why_in_its_row() -> None:
    port = free_port()
    taken, url = socket.create_server(("127.0.0.1", port)), f"tcp://127.0.0.1:{port}"
    plain = BUS % ("tcp://127.0.0.1:0", "")
    devices = f"devices: {{c: {{on: gw, catalog: '{url}'}}, v: {{on: gw, cache: b}}}}\n"
    appliance = appliance_of(loads(plain, "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        changed = loads(plain + devices, "t.yaml")
        reloaded(appliance, changed)
        row = rows_of(status_of(appliance))["c", "c"]
        assert row["state"] == "closed"
        assert "in use" in row["fault"]
        taken.close()
        reloaded(appliance, changed)
        appliance.monitor.scan(0.0)
        status = status_of(appliance)
    finally:
        appliance.close()
        taken.close()
    found = rows_of(status)
    assert (found["c", "c"]["state"], found["c", "c"]["fault"]) == ("up", "")
    assert (found["v on b", "v"]["state"], found["v on b", "device v"]["state"]) == ("up", "up")
    assert [one["source"] for one in status["events"] if one["kind"] == "link"] == ["gw/c", "gw/v"]
    assert [one["kind"] for one in status["brokers"]] == ["catalog", "cache"]


async def test_a_peer_that_was_never_dialled_and_a_row_of_the_past() -> None:
    one, two = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    server = bus_link(one, "listen")
    server.open(Hub(), asyncio.get_running_loop())
    appliance = appliance_of(loads(BUS % ("tcp://127.0.0.1:0", f", dial: {one}"), "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        await until(lambda: rows_of(status_of(appliance))["b", one]["live"] == 1)
        reloaded(appliance, loads(BUS % ("tcp://127.0.0.1:0", f", dial: {two}"), "t.yaml"))
        found = rows_of(status_of(appliance))
        assert "state" not in found["b", one]
        assert found["b", one]["gone"] == 1
        assert found["b", two]["state"] in ("opening", "waiting")
    finally:
        appliance.close()
        server.close()


GROUP = """\
name: t
gateways: {gw: {address: 127.0.0.1, status: {serve: false}}, far: {address: 127.0.0.2}}
brokers: {m: {on: gw, listen: "tcp://127.0.0.1:9"}}
buses: {b: {on: gw, listen: "tcp://127.0.0.1:0"}, c: {on: far, listen: "tcp://127.0.0.2:0"}}
bridges:
  left: {on: gw, group: motors, join: [bus: b, {tcp: {host: 127.0.0.3, port: 9}}]}
  right: {on: far, group: motors, join: [bus: c, {tcp: {host: 127.0.0.3, port: 9}}]}
"""


def test_a_claim_for_a_group_is_of_the_bridge_of_its_gateway() -> None:
    appliance = appliance_of(loads(GROUP, "t.yaml"), "gw")
    claims = tuple(CandidateStatus(name, 0, True, name == "far", 5) for name in ("gw", "far", "stranger"))
    report = Report("broker m", "broker", leases=[Lease((), "motors", 1, "far", 9, claims)])
    shown = replace(appliance.view(), besides=lambda: Besides(services=[Spoken(report)]))
    status = snapshot(shown)
    (lease,) = (lease for broker in status["brokers"] for lease in broker["leases"])
    ids = [one["part"] for one in lease["candidates"]]
    assert ids == ["bridge left@gw", "bridge right@far", ""]
    assert marks(status)["bridge right@far"].word == "active"
    assert {node["id"] for node in status["drawing"]["nodes"]} > {*ids[:2]}
    metrics = render(status, "text/plain")[0].decode()
    assert 'buscoupler_role_ready{bridge="left",lease="motors"} 0.0' in metrics


class Spoken(NamedTuple):
    """A service that gives one report."""

    words: Report

    def report(self) -> Report:
        return self.words


@pytest.mark.parametrize("key", ["hubs", "brokers"])
def test_rows_say_of_which_part_they_are(key: str) -> None:
    text = (
        "name: t\ngateways: {gw: {address: 127.0.0.1}}\nbrokers: {m: {on: gw, listen: 'tcp://127.0.0.1:9'}}"
    )
    status = status_of(appliance_of(loads(text, "t.yaml"), "gw"))
    assert status[key][0]["part"] == status["parts"][0]["id"] == "broker m"
    assert [one["kind"] for one in status["brokers"]] == ["broker", "page"]


@pytest.mark.parametrize(
    ("silent_ms", "known_ms", "found"),
    [(100, 5000, {"gw": ["10.0.0.1"]}), (5100, 5000, {}), (900, 1000, {}), (100, 1000, {})],
    ids=["two", "a start anew", "one that has just come", "one whose last claim came late"],
)
def test_two_gateways_of_one_name_behind_one_address_are_known_by_their_claims(
    silent_ms: int, known_ms: int, found: dict[str, list[str]]
) -> None:
    first = CandidateStatus("gw", 0, True, True, silent_ms, "10.0.0.1", 9000)
    second = CandidateStatus("gw", 0, True, False, 50, "10.0.0.1", known_ms)
    other = CandidateStatus("other", 1, True, False, 50, "10.0.0.1", 9000)
    lease = Lease((1,), "x", 1, "gw", 100, (first, second, other))
    assert of_one_name([Report("b", "broker", leases=[lease])]) == found
