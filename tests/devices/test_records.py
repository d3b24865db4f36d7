"""The records of our devices: what they need, refuse, and take by default, as docs/ says."""

from dataclasses import replace
from pathlib import Path

import pytest

from bus.needs import (
    Authorities,
    Certificate,
    Directory,
    Lasting,
    Library,
    Listening,
    Lookup,
    Need,
    Readable,
    Room,
    Secret,
)
from bus.transports.options import Tls
from devices.cache.device import CacheSpec
from devices.dbp import ports
from devices.dbp.catalog.device import CatalogSpec, records_of
from devices.dbp.proxy.device import ProxySpec
from devices.device import DeviceSpec
from devices.log.device import LogSpec
from devices.syndication.device import SyndicationSpec, database_of
from devices.tap.device import TapSpec
from devices.upload.device import UploadSpec
from tests.topologies.support import said
from topologies.writing import reference

ARROW = [Library("pyarrow", "pyarrow", "capture"), Library("numpy", "numpy", "capture")]
SPOOL = Room("/d", 1 << 30, "spool_bytes")
TLS = Tls(ca_file="ca.pem", cert_file="own.pem")
OWN = [
    Readable("ca.pem"),
    Readable("own.pem"),
    Authorities("ca.pem"),
    Lasting("ca.pem", trusted=True),
    Lasting("own.pem"),
    Certificate("own.pem", "own.pem"),
    Secret("own.pem"),
]


@pytest.mark.parametrize(
    ("spec", "needs"),
    [
        (CacheSpec(on="gw", cache=("p",)), []),
        (CacheSpec(on="gw", cache=("p",), services="tcp://hall:5246"), [Lookup("hall")]),
        (
            ProxySpec(on="gw", proxy="tcp://127.0.0.1:5246", dial="tls+tcp://office:5249", tls=TLS),
            [Lookup("office"), *OWN],
        ),
        (
            ProxySpec(on="gw", proxy="tcp://hall:5246", listen="tls+tcp://0.0.0.0:5249", tls=TLS),
            [Lookup("hall"), Listening("0.0.0.0", 5249), *OWN],
        ),
        (CatalogSpec(on="gw", catalog=("tcp://127.0.0.1:5246",), records="none"), []),
        (CatalogSpec(on="gw", catalog=("tcp://127.0.0.1:5246",), records="/r/c.json"), [Directory("/r")]),
        (
            TapSpec(on="gw", tap=("p",), directory="/d"),
            [*ARROW, Directory("/d"), Room("/d", 1 << 30, "keep_bytes")],
        ),
        (
            LogSpec(on="gw", log=("p",), directory="/d"),
            [*ARROW, Directory("/d"), Room("/d", 1 << 30, "keep_bytes")],
        ),
        (UploadSpec(on="gw", upload="/d", to="/mnt"), [*ARROW, Directory("/d"), SPOOL, Directory("/mnt")]),
        (
            UploadSpec(on="gw", upload="/d", to="s3://b/p", credentials="/c"),
            [*ARROW, Directory("/d"), SPOOL, Readable("/c"), Secret("/c")],
        ),
    ],
)
def test_the_needs_of_a_device(spec: DeviceSpec, needs: list[Need]) -> None:
    assert list(spec.needs()) == needs


def test_a_catalog_and_a_syndication_broker_store_in_files_named_by_their_first_address() -> None:
    assert _catalog("tcp://127.0.0.1:5246", "tcp://127.0.0.1:9") == "catalog-127.0.0.1-5246.json"
    assert _catalog("tcp://127.0.0.1:0") is None, "another port at each start"
    assert _syndication("tcp://127.0.0.1:7") == "syndication-127.0.0.1-7.db"
    assert _syndication("tcp://127.0.0.1:0") is None


def _catalog(*urls: str) -> str | None:
    file = records_of(CatalogSpec(on="gw", catalog=urls))
    return Path(file).name if file else None


def test_a_device_stores_where_its_settings_say_and_only_one_has_the_file() -> None:
    catalog = CatalogSpec(on="gw", catalog=("tcp://h:1",), records="/r/../c.json")
    broker = SyndicationSpec(on="gw", syndication=("tcp://h:1",), database="/d//b.db")
    assert (records_of(catalog), database_of(broker)) == (Path("/r/../c.json"), Path("/d/b.db"))
    assert [*catalog.takes(), *broker.takes()] == ["file /c.json", "file /d/b.db"]
    assert list(broker.needs())[-1] == Directory("/d")


@pytest.mark.parametrize("stored", ["none", None])
def test_one_that_stores_nothing_or_in_its_own_place_takes_no_file_of_the_settings(
    stored: str | None,
) -> None:
    catalog = CatalogSpec(on="gw", catalog=("tcp://h:1",), records=stored)
    broker = SyndicationSpec(on="gw", syndication=("tcp://h:1",), database=stored)
    assert [*catalog.takes(), *broker.takes()] == []
    if stored:
        assert (records_of(catalog), database_of(broker)) == (None, None)
        assert [type(need) for need in broker.needs()] == [Library] * 3


def test_a_syndication_broker_is_labelled_with_what_it_joins() -> None:
    broker = SyndicationSpec(on="gw", syndication=("tcp://h:1",))
    assert broker.label(()) == "syndication broker"
    assert broker.label(("bus p", "bus q")) == "syndication broker on bus p, bus q"


def test_a_proxy_that_listens_asks_the_other_end_for_its_certificate() -> None:
    proxy = ProxySpec(on="gw", proxy="tcp://h:1", listen="tls+tcp://0.0.0.0:2", tls=TLS)
    (listener,) = proxy.listens()
    assert listener.tls == replace(TLS, require_peer_cert=True)
    assert list(proxy.lets_in()) == ["127.0.0.1"]
    dials = ProxySpec(on="gw", proxy="tcp://h:1", dial="tls+tcp://h:2", tls=TLS)
    assert list(dials.listens()) == []


def _syndication(*urls: str) -> str | None:
    file = database_of(SyndicationSpec(on="gw", syndication=urls))
    return Path(file).name if file else None


def test_a_bus_is_stored_and_kept_once() -> None:
    with pytest.raises(ValueError, match="twice in log"):
        LogSpec(on="gw", log=("p", "q", "p"), directory="/d")
    with pytest.raises(ValueError, match="twice in cache"):
        CacheSpec(on="gw", cache=("p", "q", "p"))
    assert LogSpec(on="gw", log=("p", "q"), directory="/d").joins == ("p", "q")


def test_the_page_of_topology_files_tells_the_bounds_and_defaults_of_devices() -> None:
    """Who wrote a topology by that page gets what it says."""
    assert reference.page() == reference.PAGE.read_text()


def test_the_ports_are_those_of_the_protocol() -> None:
    """docs/dbp.md: other programs look for them there."""
    assert (*range(5245, 5250),) == (ports.BEACON, ports.CATALOG, ports.BUS, ports.MONITOR, ports.PROXY)
    assert (ports.ANNOUNCED, ports.TRIES) == (5250, 64)


def test_a_syndication_broker_has_256_rules_of_each_kind_at_most() -> None:
    head = "name: t\ngateways: {gw: }\nbuses: {b: {on: gw}}\ndevices:\n  s:\n    on: gw\n"
    head += "    syndication: tcp://127.0.0.1:7\n    producers:\n"
    rules = [f"      - {{bus: b, pattern: [{number}], codec: json}}\n" for number in range(257)]
    most, more = said(head + "".join(rules[:256])), said(head + "".join(rules))
    assert "256" not in most
    assert "256" in more


@pytest.mark.parametrize(("parts", "mib"), [(1, 8), (2, 16), (4, 32), (5, 32)])
def test_a_recorder_has_a_queue_of_8_mib_for_each_part_up_to_32(parts: int, mib: int) -> None:
    tap = TapSpec(on="gw", tap=tuple("abcde"[:parts]), directory="/d")
    assert tap.ring_bytes == mib << 20
    assert replace(tap, queue_bytes=1 << 20).ring_bytes == 1 << 20


def test_recorders_look_into_the_parts_that_they_join() -> None:
    assert TapSpec.inside
    assert LogSpec.inside
    assert not CacheSpec.inside
