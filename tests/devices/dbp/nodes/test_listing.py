"""What is read of a catalog's list, which can be false: what is malformed is left out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dbp.catalog import wire
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.wire import Received
from devices.dbp.nodes.client import LISTING
from devices.dbp.nodes.listing import Listed, read_listing
from tests.devices.dbp.catalog.room import Room

ROUTER = {"ip": "10.0.0.7", "port": 5247}


def listed(**fields: Any) -> Listed:
    return read_listing({"a": {"interfaces": {"router": ROUTER}, **fields}})["a"]


def test_a_service_with_all_that_it_can_say() -> None:
    found = listed(function="heats", topics=["x", "y"], more=1)
    assert (found.name, found.function, found.topics) == ("a", "heats", ("x", "y"))
    assert (found.router, found.fields["more"]) == (("10.0.0.7", 5247), 1)


def test_a_service_with_the_least() -> None:
    found = read_listing({"a": {"interfaces": {}}})["a"]
    assert found == Listed("a", {}, "", (), {"interfaces": {}})
    assert found.router is None


@pytest.mark.parametrize("value", [None, 5, [], "x", {}, {"interfaces": None}, {"interfaces": []}])
def test_what_is_no_service_is_left_out(value: Any) -> None:
    assert read_listing({"a": value}) == {}


def test_the_warning_of_a_catalog_is_no_service() -> None:
    assert read_listing({"Error": {"interfaces": {}}}) == {}


def test_fields_of_another_form_are_left_out() -> None:
    found = listed(function=5, topics="x")
    assert (found.function, found.topics) == ("", ())
    assert listed(topics=["x", 5, None, "y"]).topics == ("x", "y")


@pytest.mark.parametrize(
    ("interface", "address"),
    [
        ({"ip": "10.0.0.7", "port": 1, "hwm": 5}, ("10.0.0.7", 1)),
        ({"ip": "10.0.0.7", "port": 65535}, ("10.0.0.7", 65535)),
        ({"ip": "10.0.0.7", "port": 65536}, None),
        ({"ip": "10.0.0.7", "port": 0}, None),
        ({"ip": "10.0.0.7", "port": "1"}, None),
        ({"ip": "10.0.0.7", "port": True}, None),
        ({"ip": 5, "port": 1}, None),
        ({"port": 1}, None),
        ("10.0.0.7:1", None),
    ],
)
def test_an_interface_is_an_address_with_a_port(interface: Any, address: Any) -> None:
    assert listed(interfaces={"router": interface}).router == address


ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["interfaces", "ip", "port"]), inner)
    ),
)


@given(st.dictionaries(st.text(max_size=3), ANY))
def test_no_list_makes_it_raise(fields: dict[str, Any]) -> None:
    assert read_listing(fields).keys() <= fields.keys()


def test_no_service_that_a_catalog_lists_makes_its_list_unreadable() -> None:
    """The deepest, the one with most items, and the longest: else one service hides all others."""
    room = Room()
    deep: Any = 1
    for _ in range(room.bounds.depth - 1):
        deep = [deep]
    made = {"deep": deep, "wide": [0] * (room.bounds.items - 10), "long": "x" * 8000}
    for port, (name, more) in enumerate(made.items()):
        room.register(name, 5247 + port, more=more)
    received = wire.parse([b"", wire.INFO_REPLY, b"1.0", room.registry.services.every()], LISTING)
    assert isinstance(received, Received)
    assert set(read_listing(received.fields)) == set(made)


def test_the_bounds_of_a_list_are_those_of_all_services_together() -> None:
    one = Bounds()
    names = one.services * (6 + 3 * one.text_bytes)
    assert one.all_entry_bytes + names <= LISTING.message_bytes <= 2 * LISTING.items
    assert one.depth < LISTING.depth
