"""The list of services: room for names, and who is suspect at first."""

import json

from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.entry import Entry, read
from devices.dbp.catalog.life import Watch
from devices.dbp.catalog.services import Service, Services


def service(name: str, more: str = "", host: str = "10.9.0.1") -> Service:
    fields = {"name": name, "interfaces": {"x": {"ip": "10.1.1.1", "port": 1}}, "more": more}
    entry = read(fields, "", False, Bounds())
    assert isinstance(entry, Entry)
    return Service(entry, host, Watch(1.0, False, 0.0), True)


def test_nobody_is_suspect_at_first_or_has_a_connection() -> None:
    one = service("a")
    assert (one.suspect, one.peer, one.binary_time) == (False, b"", True)


def test_a_name_is_listed_once() -> None:
    services = Services(Bounds())
    assert services.add(service("a")) == ""
    assert services.add(service("a")) == "services of one name"
    assert len(services) == 1


def test_a_change_that_has_no_room_takes_none() -> None:
    one, *others = service("a"), *(service(name, host=f"10.9.0.{name}") for name in "234")
    size = len(one.entry.packed)
    services = Services(Bounds(all_entry_bytes=4 * size))
    assert [services.add(each) for each in (one, *others)] == [""] * 4
    for _ in range(3):
        assert services.change(one, service("a", "x").entry) == "services full"
    services.remove(others[0])
    assert services.change(one, service("a", "x" * size).entry) == ""
    services.remove(others[1])
    assert services.change(one, service("a", "x" * (size + 1)).entry) == "services of one host"
    services.remove(one)
    assert services.add(service("a", "x" * size)) == ""


def test_the_replies_are_json_of_all_or_of_some_with_a_warning() -> None:
    services, a, b = Services(Bounds()), service('a "é"'), service("b")
    assert services.every() == b"{}"
    services.add(a)
    services.add(b)
    assert json.loads(services.every()) == {'a "é"': a.entry.fields, "b": b.entry.fields}
    assert services.every() is services.every()
    assert json.loads(services.some(["b", "b"])) == {"b": b.entry.fields}
    assert json.loads(services.some(["x", "b", "y", "x"])) == {"b": b.entry.fields, "Error": "inactive: x, y"}
    assert json.loads(services.some(["x"])) == {"Error": "inactive: x"}
