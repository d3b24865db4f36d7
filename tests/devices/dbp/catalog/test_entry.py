"""What a registration says: what is enough, what is wrong, and whose address it has."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dbp.catalog.body import read_objects
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.entry import FAULTS, Entry, read
from tests.devices.dbp.catalog import original
from tests.devices.dbp.catalog.strategies import values

ROHAN = read_objects(original.REGISTRATION[3], Bounds()) or {}


def entry(host: str = "10.9.0.1", strict: bool = False, **changes: Any) -> Entry:
    found = read({**ROHAN, **changes}, host, strict, Bounds())
    assert isinstance(found, Entry), found
    return found


def faults(strict: bool = False, bounds: Bounds | None = None, **changes: Any) -> tuple[str, ...]:
    fields = {key: value for key, value in {**ROHAN, **changes}.items() if value is not ...}
    found = read(fields, "10.9.0.1", strict, bounds or Bounds())
    assert not isinstance(found, Entry), found
    assert set(found) <= FAULTS.keys()
    return found


def interface(ip: Any = "10.1.1.1", port: Any = 1, **more: Any) -> dict[str, Any]:
    return {"router": {"ip": ip, "port": port, **more}}


def test_what_the_original_says_is_enough() -> None:
    found = entry()
    assert found.name == "Rohan"
    assert found.packed == original.REGISTRATION[3].replace(b'"name": "Rohan", ', b"").replace(
        b"127.0.0.1", b"10.9.0.1"
    )
    assert (found.router, found.interval_s) == (("10.9.0.1", 5247), None)


def test_other_fields_are_kept() -> None:
    found = entry(retry=3, interfaces=interface(hwm=5), deep={"a": [1, None]})
    assert found.fields["retry"] == 3
    assert found.fields["interfaces"] == interface(hwm=5)
    assert read_objects(found.packed, Bounds()) == found.fields


@pytest.mark.parametrize(
    "ip", ["127.0.0.1", "127.9.9.9", "localhost", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"]
)
def test_a_loopback_address_becomes_the_peer_s(ip: str) -> None:
    assert entry("10.9.0.7", interfaces=interface(ip)).router == ("10.9.0.7", 1)
    assert entry("127.0.0.1", interfaces=interface(ip)).router == ("127.0.0.1", 1)


@pytest.mark.parametrize(
    ("ip", "kept"),
    [
        ("10.1.1.1", "10.1.1.1"),
        ("fd00::0001", "fd00::1"),
        ("::ffff:10.1.1.1", "10.1.1.1"),
        ("127.0.0.1", "127.0.0.1"),
    ],
)
@pytest.mark.parametrize("host", ["", "fe80::1%lo"])
def test_other_addresses_are_kept_in_one_spelling(ip: str, kept: str, host: str) -> None:
    assert entry(host, interfaces=interface(ip)).router == (kept, 1)


def test_addresses_are_those_of_all_interfaces() -> None:
    found = entry(interfaces={"pub": {"ip": "::1", "port": 2}, **interface()})
    assert found.addresses == {("10.9.0.1", 2), ("10.1.1.1", 1)}
    assert entry(interfaces={"pub": {"ip": "::1", "port": 2}}).router is None


@pytest.mark.parametrize(
    "name", [..., None, 5, "", "Error", "a\n", "\ud800", "x" * 201, "é" * 101, "\u200b", ["a"]]
)
def test_a_name_that_is_none(name: Any) -> None:
    assert faults(name=name) == ("name",)


@pytest.mark.parametrize("name", ["x" * 200, "é" * 100, "error", "Error ", "a b", "{}", "日本"])
def test_names(name: str) -> None:
    assert entry(name=name).name == name


@pytest.mark.parametrize(
    "interfaces",
    [..., None, {}, [], "x", {"router": None}, {"router": {}}, {"router": {"ip": "10.1.1.1"}},
     {"router": {"port": 1}}, {"a": interface()["router"], "b": {}}]
    + [interface(ip) for ip in ("", "*", "host", "10.1.1", "10.1.1.256", "010.1.1.1", "224.0.0.1", "ff02::1",
                                "fe80::1%lo", 5, None, "::ffff:224.0.0.1", "10.1.1.1:5")]
    + [interface(port=port) for port in (0, -1, 65536, "1", 1.0, True, None, 10**30)],
)  # fmt: skip
def test_interfaces_that_are_none(interfaces: Any) -> None:
    assert faults(interfaces=interfaces) == ("interfaces",)


def test_other_fields_that_are_wrong() -> None:
    assert faults(topics="x") == faults(topics=[1]) == faults(topics={}) == ("topics",)
    assert faults(reg_time=[]) == faults(reg_time={}) == ("reg_time",)
    for wrong in (None, "1000", 0, -1, True, [1000]):
        assert faults(liveliness=wrong) == ("liveliness",)
    assert faults(name="", interfaces={}, topics=1, reg_time=[], liveliness=0) == (
        "name",
        "interfaces",
        "reg_time",
        "topics",
        "liveliness",
    )


def test_the_least_that_is_enough() -> None:
    assert read({"name": "a", "interfaces": interface()}, "", False, Bounds()).__class__ is Entry
    assert entry(topics=["a", "b"], reg_time=1.5, function=5).fields["function"] == 5


def test_strict_asks_for_what_the_specification_wants() -> None:
    assert faults(strict=True) == ("function", "liveliness")
    assert faults(strict=True, function="", liveliness=1000) == ("function",)
    assert faults(strict=True, function=5, liveliness=1000) == ("function",)
    assert entry(strict=True, function="rides", liveliness=1000).interval_s == 1.0


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [(1000, 1000), (1500.5, 1500.5), (1, 250), (250, 250), (60000, 60000), (10**400, 60000)],
)
def test_the_interval_is_brought_between_its_bounds(offered: float, agreed: float) -> None:
    found = entry(liveliness=offered)
    assert (found.fields["liveliness"], found.interval_s) == (agreed, agreed / 1000)


def test_the_size_is_that_of_the_json_that_clients_get() -> None:
    size = len(entry(more="").packed)
    assert len(entry(more="x" * (8192 - size)).packed) == 8192
    assert faults(more="x" * (8193 - size)) == ("size",)
    assert faults(more="é" * 1400) == ("size",)  # 6 bytes each, in ASCII


keys = st.sampled_from(["name", "interfaces", "reg_time", "topics", "function", "liveliness", "more"])
parts: Any = values | st.dictionaries(
    st.text(max_size=3), st.fixed_dictionaries({"ip": st.text(), "port": values})
)


hosts = st.text(max_size=5) | st.sampled_from(["10.9.0.1", "::1", "fe80::1%lo"])


@given(st.dictionaries(keys, parts), st.booleans(), hosts)
def test_no_registration_raises(fields: dict[str, Any], strict: bool, host: str) -> None:
    for said in (fields, {**ROHAN, **fields}):
        found = read(said, host, strict, Bounds())
        if isinstance(found, Entry):
            assert read_objects(found.packed, Bounds(depth=100, items=10000)) == found.fields
            assert read({**found.fields, "name": found.name}, "", strict, Bounds()) == found
        else:
            assert found
            assert set(found) <= FAULTS.keys()


def test_a_service_that_says_what_the_text_asks_for_is_listed_with_an_interface_and_an_interval() -> None:
    said = {"name": "therm", "ip": "127.0.0.1", "port": 5300, "function": "temp", "heartbeat": 2}
    made = read(said, "10.0.0.7", True, Bounds())
    assert isinstance(made, Entry)
    assert made.router == ("10.0.0.7", 5300)
    assert (made.interval_s, made.fields["function"], made.fields["port"]) == (2.0, "temp", 5300)
    for wrong in ({"port": 0}, {"ip": "nowhere"}, {"port": None}):
        assert read({**said, **wrong}, "10.0.0.7", True, Bounds()) == ("interfaces",)
    assert read({**said, "heartbeat": "often"}, "10.0.0.7", True, Bounds()) == ("liveliness",)


def test_a_field_named_heartbeat_beside_interfaces_is_one_of_the_service_s_own() -> None:
    said = {"name": "oven", "interfaces": {"router": {"ip": "10.0.0.7", "port": 1}}, "heartbeat": 2}
    made = read(said, "10.0.0.7", False, Bounds())
    assert isinstance(made, Entry)
    assert made.interval_s is None
