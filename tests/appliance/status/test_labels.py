"""The names of links for people: those of the file, also for accounts without a link of their own."""

from collections.abc import Sequence
from typing import NamedTuple
from unittest.mock import ANY

import pytest

from appliance.status.labels import Labels, titles
from appliance.status.rows import LinkRow, apart, bare
from appliance.status.view import Beside
from bus.hub import Hub, Link
from bus.leases.candidacy import Candidacy
from bus.report import Reporter
from bus.transports.links import bus_link
from devices.tap.recorder import Recorder


def row(name: str, label: str = "", hub: str = "m") -> LinkRow:
    return LinkRow(Hub(hub), name, bus_link("tcp://127.0.0.1:0", "listen"), label=label)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("1 can/can:can0", "can:can0"),
        ("plain/tcp://h:1", "tcp://h:1"),
        ("trunk/motor", "motor"),
        ("tcp://h:1/2 x/y", "tcp://h:1/2 x/y"),
        ("", ""),
    ],
)
def test_the_side_is_no_part_of_the_name(name: str, label: str) -> None:
    assert bare(name) == label
    assert Labels(()).of("m", name) == label


class Part(NamedTuple):
    kind: str
    name: str
    id: str = ""
    links: Sequence[Link] = ()
    hubs: Sequence[Hub] = ()
    rows: Sequence[LinkRow] = ()
    services: Sequence[Reporter] = ()
    recorders: Sequence[Recorder] = ()
    candidacy: Candidacy | None = None
    beside: Beside | None = None


def test_the_other_half_of_a_patch_is_called_after_its_bridge() -> None:
    assert titles([Part("bus", "m"), Part("bridge", "n")]) == {"n": "bridge n"}


def test_a_link_has_the_label_of_its_row_and_so_has_its_spool() -> None:
    labels = Labels([row("0 bus/m", "bus hall"), row("1 mqtt/mqtt:h")], {"n": "bridge n"})
    names = {"0 bus/m": "bus hall", "1 mqtt/mqtt:h": "mqtt:h", "1 mqtt/mqtt:h spool": "mqtt:h spool"}
    assert {name: labels.of("m", name) for name in names} == names
    assert (labels.of("other", "0 bus/m"), labels.of("m", "trunk/n")) == ("m", "bridge n")
    assert labels.source("m", "0 bus/m") == "m/bus hall"


def test_events_do_not_say_the_name_of_a_hub_twice() -> None:
    assert row("1 can/can:can0").source == "m/can:can0"
    assert row("tap t", hub="tap t").source == "tap t"
    assert row("rec: capture to /x", hub="rec").source == "rec: capture to /x"
    assert row("tcp://h:1", "dial bus b", hub="d").source == "d/dial bus b"


def test_links_that_people_would_call_the_same_are_told_apart() -> None:
    hub = Hub("m")
    names = {
        "tcp://h:1": "dial bus b", "tcp://h:2": "dial bus b", "tcp://h:3": "dial bus c", "1 can/can:can0": "",
        "2 can/can:can0": "",
    }  # fmt: skip
    rows = [row(name, label)._replace(hub=hub) for name, label in names.items()]
    assert [one.shown for one in apart(rows)] == [
        "dial bus b, tcp://h:1", "dial bus b, tcp://h:2", "dial bus c", "can:can0, 1 can", "can:can0, 2 can",
    ]  # fmt: skip
    assert [one.called for one in apart(rows)] == [one.shown for one in rows]
    assert apart([rows[0], rows[0]]) == [rows[0], rows[0]]  # one account
    assert apart([rows[0], rows[1]._replace(hub=Hub("n"))]) == [rows[0], rows[1]._replace(hub=ANY)]
