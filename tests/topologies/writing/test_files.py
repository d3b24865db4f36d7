"""The text of a new topology: what is left out, what is quoted, and that it is read as it was meant."""

import pytest

from bridges.media.can.medium import Can
from bridges.media.medium import Medium
from bridges.media.uart.medium import Uart
from topologies.loading.loader import loads
from topologies.writing.files import Joined, New, written

NEW = New("plant", "gw", "192.0.2.1", "tcp://0.0.0.0:5", [], "s.json")
CAN, UART = Can(channel="can0", fd=True), Uart(port="/dev/ttyS0")


def test_a_new_topology_is_short() -> None:
    assert written(NEW._replace(media=[Joined(CAN), Joined(UART)], remarks=["one", "two"])) == (
        "# yaml-language-server: $schema=s.json\n"
        "# one\n"
        "# two\n"
        "name: plant\n"
        "gateways:\n"
        "  gw: {address: 192.0.2.1}\n"
        "buses:\n"
        '  plant: {on: gw, listen: ["tcp://0.0.0.0:5"]}\n'
        "bridges:\n"
        "  media:\n"
        "    on: gw\n"
        "    join:\n"
        "      - bus: plant\n"
        "      - can: {channel: can0, fd: true}\n"
        "      - uart: {port: /dev/ttyS0}\n"
    )


def test_without_media_there_is_no_bridge() -> None:
    assert "bridges" not in written(NEW)
    assert loads(written(NEW)).bridges == {}


@pytest.mark.parametrize(
    "medium",
    [
        CAN,
        Can(channel=1),
        Can(channel="1"),
        Can(channel="true"),
        Can(channel="a: b # c"),
        Can(channel="${HOME}"),
        Can(channel="c", interface="kvaser", bitrate=125_000, options={"k": 1}),
        Uart(port="/dev/ttyUSB0", baud=9600),
    ],
    ids=str,
)
def test_what_is_written_is_read_as_it_was(medium: Medium) -> None:
    topology = loads(written(NEW._replace(media=[Joined(medium)])))
    assert topology.bridges["media"].at("gw")[1].medium == medium


@pytest.mark.parametrize("name", ["yes", "42", "1.5", "null"])
def test_a_name_that_looks_like_something_else_is_quoted(name: str) -> None:
    text = written(NEW._replace(name=name, gateway=name))
    assert f'name: "{name}"' in text
    assert list(loads(text).gateways) == [loads(text).name] == [name]
