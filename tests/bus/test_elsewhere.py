"""Names of other systems in topologies and on the command line."""

import pytest

from appliance.probe.endpoint import parse_endpoint
from bridges.media import MEDIA
from bridges.protocols import PROTOCOLS
from bus.elsewhere import WORDS, known_elsewhere
from bus.errors import LinkError
from bus.urls import SCHEMES
from devices import DEVICES
from tests.topologies.support import GATEWAY, said

SIDE = GATEWAY + "buses: {p: {on: gw}}\nbridges: {b: {on: gw, join: [{bus: p}, {%s: x}]}}\n"


def test_no_name_of_ours_is_one_of_others() -> None:
    assert not set(WORDS) & {*MEDIA.ours(), *DEVICES.ours(), *SCHEMES}
    assert known_elsewhere("uart") == known_elsewhere("tap") == ""
    assert known_elsewhere("OPC-UA") == known_elsewhere("opcua") != ""
    assert known_elsewhere("modbus_rtu") == known_elsewhere("Modbus")


@pytest.mark.parametrize("word", WORDS)
def test_each_is_told_as_a_side_and_as_an_endpoint(word: str) -> None:
    text = said(SIDE % word)
    assert "did you mean" not in text
    assert WORDS[word] in text
    if word not in ("rs485", "tty"):  # an endpoint of ours, and the beginning of one
        with pytest.raises(LinkError) as caught:
            parse_endpoint(f"{word}:x")
        assert WORDS[word] in str(caught.value)


def test_no_protocol_that_is_spoken_here_is_said_not_to_be() -> None:
    for name in PROTOCOLS.ours():
        assert "not translated" not in known_elsewhere(name)


def test_a_protocol_of_others_is_told_where_protocols_stand() -> None:
    side = (
        GATEWAY + "buses: {p: {on: gw}}\nbridges: {b: {on: gw, join: [{bus: p}, {can: c, protocol: %s}]}}\n"
    )
    assert "{raw: ...}" in said(side % "canopen")
    assert "OPC UA are not translated" in said(side % "{opcua: {}}")


@pytest.mark.parametrize("word", ["can://can0?node=1", "uart:///dev/ttyUSB0", "tmq://127.0.0.1:9942"])
def test_a_medium_is_written_without_slashes(word: str) -> None:
    with pytest.raises(LinkError, match="without //") as caught:
        parse_endpoint(word)
    parse_endpoint(str(caught.value).partition(": write ")[2].removesuffix(", without //"))
