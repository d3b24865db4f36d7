"""Which services cross, and that none goes round, whatever proxies there are between the catalogs."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from devices.dbp.nodes.listing import Listed, read_listing
from devices.dbp.proxy.offers import HOPS_MAX, SERVICES_MAX, VIA, fitting, is_allowed, offers_of, takes_of

ROUTER = {"router": {"ip": "10.0.0.7", "port": 5247}}


def listed(**services: Mapping[str, Any]) -> dict[str, Listed]:
    return read_listing({name: {"interfaces": ROUTER, **fields} for name, fields in services.items()})


def test_an_allow_list_names_what_crosses() -> None:
    assert is_allowed("sensor/1", ("sensor/*",))
    assert not is_allowed("sensors", ("sensor/*", "Sensors"))
    assert not is_allowed("x", ())
    assert not is_allowed("Error", ("*",))
    offers = offers_of(listed(a={}, b={}), ("a",), "own", "far")
    assert offers.addresses == {("a", "router"): ("10.0.0.7", 5247)}
    assert offers.services == {"a": {"interfaces": ["router"], VIA: ["own"]}}


def test_what_is_its_own_business_does_not_cross() -> None:
    fields = {"function": "f", "reg_time": "now", "liveliness": 1000, "name": "b", "colour": "red"}
    offers = offers_of(listed(a=fields), ("*",), "own", "far")
    assert offers.services["a"] == {"function": "f", "colour": "red", "interfaces": ["router"], VIA: ["own"]}
    (taken,) = takes_of(offers.services, ("*",), "far").values()
    assert taken.fields == {"function": "f", "colour": "red", VIA: ["own"]}


def test_what_came_by_one_of_both_or_too_far_is_not_offered() -> None:
    services = listed(
        a={VIA: ["own"]}, b={VIA: ["x", "far"]}, c={VIA: ["x"] * HOPS_MAX}, d={VIA: ["x"]}, e={VIA: 5}
    )
    assert list(offers_of(services, ("*",), "own", "far").services) == ["d", "e"]


def test_malformed_offers_are_left_out_and_their_number_is_bounded() -> None:
    good = {"interfaces": ["router"]}
    odd: dict[str, dict[str, Any]] = {
        "a": {}, "b": {"interfaces": []}, "c": {"interfaces": [5]}, "d": {"interfaces": "router"},
        "e": {"interfaces": ["router"], VIA: ["own"]}, "Error": good, "f": good,
    }  # fmt: skip
    assert list(takes_of(odd, ("*",), "own")) == ["f"]
    many = {f"s{number}": good for number in range(SERVICES_MAX + 9)}
    assert len(takes_of(many, ("*",), "own")) == SERVICES_MAX
    assert (
        len(offers_of(listed(**{name: {} for name in many}), ("*",), "own", "far").services) == SERVICES_MAX
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda ends: ends[0] != ends[1]), max_size=7
    )
)
def test_a_service_that_ends_disappears_from_every_catalog(joints: list[tuple[int, int]]) -> None:
    """Any network of catalogs 0 to 4: each joint is two proxies, which offer and accept everything."""
    catalogs: list[dict[str, Mapping[str, Any]]] = [{} for _ in range(5)]
    catalogs[0]["s"] = {"interfaces": ROUTER}
    by: dict[tuple[int, int], bool] = {}

    def settle() -> None:
        for _ in range(40):
            for number, ends in enumerate(joints):
                for way, (here, there) in enumerate((ends, ends[::-1])):
                    own, far = f"{number}.{way}", f"{number}.{1 - way}"
                    offered = offers_of(read_listing(catalogs[here]), ("*",), own, far).services
                    taken = takes_of(offered, ("*",), far).get("s")
                    key = (number, way)
                    if by.get(key):
                        catalogs[there].pop("s")
                        by[key] = False
                    if taken is not None and "s" not in catalogs[there]:
                        catalogs[there]["s"] = {"interfaces": ROUTER, **taken.fields}
                        by[key] = True

    settle()
    reached = {0}
    for _ in range(5):
        reached |= {b for a, b in [*joints, *(ends[::-1] for ends in joints)] if a in reached}
    assert {number for number, catalog in enumerate(catalogs) if "s" in catalog} == reached
    del catalogs[0]["s"]
    settle()
    assert [catalog for catalog in catalogs if "s" in catalog] == []


def test_at_most_eight_proxies_stand_in_a_row_and_256_services_cross() -> None:
    """docs/dbp.md"""
    assert (HOPS_MAX, SERVICES_MAX) == (8, 256)
    near = listed(a={VIA: ["x"] * 7}, b={VIA: ["x"] * 8})
    assert offers_of(near, ("*",), "own", "far").services["a"][VIA] == [*["x"] * 7, "own"]
    assert "b" not in offers_of(near, ("*",), "own", "far").services
    router = {"interfaces": ["router"]}
    far = {"a": {**router, VIA: ["x"] * 8}, "b": {**router, VIA: ["x"] * 9}}
    assert list(takes_of(far, ("*",), "own")) == ["a"]


def test_a_service_that_came_by_either_proxy_is_offered_by_none() -> None:
    near = listed(a={VIA: ["own", "x"]}, b={VIA: ["far"]}, c={})
    assert list(offers_of(near, ("*",), "own", "far").services) == ["c"]


def test_of_too_many_the_first_by_name_cross() -> None:
    names = [f"s{number:03}" for number in range(SERVICES_MAX + 2)]
    near = listed(**{name: {} for name in reversed(names)})
    assert list(offers_of(near, ("*",), "own", "far").services) == names[:-2]
    far = {name: {"interfaces": ["router"]} for name in reversed(names)}
    assert list(takes_of(far, ("*",), "own")) == names[:-2]


def test_of_one_service_16_interfaces_are_taken() -> None:
    interfaces = [f"i{number}" for number in range(17)]
    assert takes_of({"a": {"interfaces": interfaces}}, ("*",), "own")["a"].interfaces == tuple(
        interfaces[:16]
    )
    assert takes_of({"a": {"interfaces": ["", "i"]}}, ("*",), "own") == {}


def test_what_is_no_list_of_texts_names_no_proxy() -> None:
    near = listed(a={VIA: "own"}, b={VIA: [5, "x"]})
    offered = offers_of(near, ("*",), "own", "far").services
    assert (offered["a"][VIA], offered["b"][VIA]) == (["own"], ["x", "own"])


def test_many_new_services_push_out_none_that_cross_already() -> None:
    names = [f"s{number}" for number in range(SERVICES_MAX)]
    found = listed(**{name: {} for name in (*names, "zebra")})
    offers = offers_of(found, ("*",), "own", "far", ("zebra",)).services
    assert "zebra" in offers
    assert len(offers) == SERVICES_MAX
    many = {name: {"interfaces": ["router"]} for name in found}
    assert "zebra" in takes_of(many, ("*",), "own", ("zebra",))
    assert "zebra" not in takes_of(many, ("*",), "own")


def test_services_are_taken_while_there_are_descriptors_for_their_ports() -> None:
    ports = {"many": 16, "one": 1, "two": 2, "three": 3}
    offer = {name: {"interfaces": [f"i{n}" for n in range(count)]} for name, count in ports.items()}
    taken = takes_of(offer, ("*",), "own", ("two",))
    assert list(fitting(taken, 100)) == ["two", "many", "one", "three"]
    assert list(fitting(taken, 22)) == ["two", "many"]
    assert list(fitting(taken, 12)) == ["two", "one", "three"]
    assert fitting(taken, 2) == {}
