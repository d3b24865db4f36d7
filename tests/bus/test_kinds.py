"""Records by key: ours without a look at entry points, others by them."""

from importlib import metadata
from typing import Any

import pytest

from bridges.media import MEDIA
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.medium import Uart
from bridges.protocols import PROTOCOLS
from bus.kinds import Kinds
from devices import DEVICES
from tests.topologies.support import GATEWAY, said
from topologies.model.alarms import OUTLETS

OURS = {"uart": "bridges.media.uart.medium:Uart", "tcp": "bridges.media.tcp.medium:Tcp"}
SIDE = GATEWAY + "buses: {p: {on: gw}}\nbridges: {b: {on: gw, join: [bus: p, {%s}]}}\n"


def entries(monkeypatch: pytest.MonkeyPatch, **named: str) -> list[str]:
    """Entry points with these names and values are installed; the groups that are asked for."""
    asked = list[str]()

    def entry_points(group: str) -> list[metadata.EntryPoint]:
        asked.append(group)
        return [metadata.EntryPoint(name, value, group) for name, value in named.items()]

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    return asked


def test_one_of_ours_is_found_without_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = entries(monkeypatch)
    kinds: Kinds[Any] = Kinds("some.media", OURS)
    assert (kinds.find("uart"), kinds.find("tcp"), kinds.ours()) == (Uart, Tcp, ("uart", "tcp"))
    assert asked == []


def test_others_come_after_ours_and_cannot_take_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = entries(monkeypatch, radio="bridges.media.tcp.medium:Tcp", uart="nowhere:Uart")
    kinds: Kinds[Any] = Kinds("some.media", OURS)
    assert kinds.all() == ("uart", "tcp", "radio")
    assert (kinds.find("radio"), kinds.find("uart"), kinds.find("rad")) == (Tcp, Uart, None)
    assert asked == ["some.media"]


def test_one_that_cannot_be_imported_is_said_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    entries(monkeypatch, radio="not_there.medium:Radio")
    kinds: Kinds[Any] = Kinds("some.media", OURS)
    with pytest.raises(ValueError, match=r'"radio" of not_there\.medium:Radio cannot be imported: No module'):
        kinds.find("radio")
    monkeypatch.setitem(vars(MEDIA), "_others", kinds._others)  # noqa: SLF001
    text = 't.yaml:4:39: error: bridges.b.join[1].radio: "radio" of not_there.medium:Radio cannot be imported'
    assert text in said(SIDE % "radio: {port: 1}")
    both = said(SIDE % "radio: {port: 1}, baud: 9600")  # what is wrong beside it is told, too
    assert text in both
    assert 'unknown key "baud"' in both


@pytest.mark.parametrize("kinds", [MEDIA, PROTOCOLS, DEVICES, OUTLETS])
def test_each_of_ours_calls_itself_as_the_table_does(kinds: Kinds[Any]) -> None:
    """`show` and the log have the name of the record, files that of the table."""
    assert {key: kind.key for key, kind in kinds.known()} == {key: key for key in kinds.ours()}


def test_a_side_is_one_of_them_and_a_wrong_key_has_its_nearest() -> None:
    words = f"a side is one of bus, {', '.join(MEDIA.ours())}"
    assert f"bridges.b.join[1]: {words}; found uart, can" in said(SIDE % "uart: /dev/x, can: can0")
    assert f"bridges.b.join[1]: {words}; found bus, tcp" in said(SIDE % "bus: p, tcp: {host: h, port: 1}")
    assert f"bridges.b.join[1]: {words}; found none" in said(SIDE % "trunk: true")
    assert 'join[1].multcast: unknown key "multcast"; did you mean "multicast"?' in said(
        SIDE % "multcast: {}"
    )
