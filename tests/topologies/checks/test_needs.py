"""What a gateway needs of its machine: files, names and ports, each once, and those of no other gateway."""

import pathlib
import shutil
from collections.abc import Iterator
from typing import get_args

import pytest

from bridges.media import MEDIA
from bridges.protocols import PROTOCOLS
from bus.key_types import Path
from bus.needs import KeyFile, Listening, Lookup, Need, Readable, Secret
from bus.schema import Record, settings
from devices import DEVICES
from tests.helpers import ROOT
from topologies.checks.needs import needs_of
from topologies.loading.loader import load, loads
from topologies.model.alarms import OUTLETS
from topologies.wiring.segments import wired

HOSTS = "name: t\ngateways: {a: {address: gw-a}, b: {address: gw-b}%s}\n"


def needs(text: str, gateway: str, more: str = "") -> list[Need]:
    return [need for _, need in needs_of(wired(loads(HOSTS % more + text)), gateway)]


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("{}", []),
        ("{token_file: /t}", [Readable("/t"), Secret("/t")]),
        ("{listen: 'http://127.0.0.1:8080'}", [Listening("127.0.0.1", 8080)]),
        (
            "{listen: 'http://127.0.0.1:8080', token_file: /t}",
            [Listening("127.0.0.1", 8080), Readable("/t"), Secret("/t")],
        ),
        ("{listen: 'http://127.0.0.1:8080', token_file: /t, serve: false}", []),
    ],
)
def test_a_status_page_needs_its_port_and_its_token_if_there_is_one(page: str, wanted: list[Need]) -> None:
    assert needs("buses: {p: {on: a}}\n", "c", f", c: {{status: {page}}}") == wanted


JOINED = "buses: {p: {on: a}, q: {on: b%s}}\nbridges: {x: {on: a, join: [bus: p, bus: q]}}\n"


@pytest.mark.parametrize(
    ("listen", "wanted"),
    [(", listen: 'tcp://*:5'", [Lookup("gw-b")]), (", listen: 'tcp://127.0.0.1:5'", []), ("", [])],
)
def test_a_side_needs_the_name_of_the_gateway_whose_bus_it_dials_if_that_can_be_reached(
    listen: str, wanted: list[Need]
) -> None:
    assert needs(JOINED % listen, "a") == wanted


BROKERS = (
    "brokers: {m: {on: a, listen: 'tcp://127.0.0.1:1'}, n: {on: b, listen: 'tcp://*:2'}}\nkeys: /k\n"
    "buses: {p: {on: c}, q: {on: d}}\n"
    "bridges: {x: {on: [c, d], join: [bus: {c: p, d: q}, uart: /dev/x]}}\n"
)
MORE = ", c: {}, d: {}, e: {}"


def test_brokers_need_each_other_s_ipv4_addresses_and_the_keys_of_the_file() -> None:
    assert needs(BROKERS, "a", MORE) == [Listening("127.0.0.1", 1), Lookup("gw-b", True), KeyFile("/k")]
    assert needs(BROKERS.replace("127.0.0.1:1", "*:1"), "b", MORE) == [
        Listening("*", 2),
        Lookup("gw-a", True),
        KeyFile("/k"),
    ]


@pytest.mark.parametrize("gateway", ["c", "d"])
def test_who_may_take_over_needs_the_ipv4_addresses_of_all_brokers_and_the_keys_of_the_file(
    gateway: str,
) -> None:
    found = needs(BROKERS.replace("127.0.0.1:1", "*:1"), gateway, MORE)
    assert found[-3:] == [KeyFile("/k"), Lookup("gw-a", True), Lookup("gw-b", True)]


def test_who_has_no_broker_and_takes_nothing_over_needs_neither() -> None:
    assert needs(BROKERS, "e", MORE) == []
    alone = BROKERS.replace("[c, d]", "c").replace("{c: p, d: q}", "p")
    found = needs(alone, "c", MORE)
    assert not any(isinstance(need, KeyFile | Lookup) for need in found)


PATHS = """
keys: /p/Topology.keys
names: {file: DIR/NamesSpec.file}
gateways:
  c: {address: 10.0.0.1, status: {listen: "https://10.0.0.1:9943", token_file: /p/StatusSpec.token_file,
      ack_file: /p/StatusSpec.ack_file,
      tls: {ca_file: /p/Tls.ca_file, cert_file: /p/Tls.cert_file, key_file: /p/Tls.key_file}}}
  d: {address: 10.0.0.2}
buses:
  p:
    on: c
    listen: {url: "tcp://10.0.0.1:1", trunk: true, keys: /p/Listen.keys}
    dial: {url: "tcp://10.0.0.3:1", trunk: true, keys: /p/Dial.keys}
    trunks: {bus: q, durable: /p/Durable.directory}
  q: {on: d, listen: {url: "tcp://10.0.0.2:1", trunk: true}}
bridges:
  x:
    on: c
    join:
      - bus: p
      - {multicast: {group: 239.1.1.1, port: 5, interface: eth0}, trunk: true, keys: /p/Side.keys}
      - {can: {channel: can0}, protocol: {dbc: {file: DIR/Dbc.file.dbc, root: e}}}
      - uart: /p/Uart.port
devices:
  t: {on: c, tap: p, directory: /p/TapSpec.directory}
  l: {on: c, log: p, directory: /p/LogSpec.directory}
  u: {on: c, upload: /p/TapSpec.directory, to: "s3://b/p", credentials: /p/UploadSpec.credentials}
  v: {on: c, upload: /p/LogSpec.directory, to: /p/UploadSpec.to}
  k: {on: c, catalog: "tcp://10.0.0.1:2", records: /p/CatalogSpec.records/file}
  s: {on: c, syndication: "tcp://10.0.0.1:3", database: /p/SyndicationSpec.database/file}
  o: {on: c, telemetry: x, to: "https://c:4318", ca_file: /p/TelemetrySpec.ca_file}
alarms:
  z: {bus: p, pattern: a, missing_s: 5, notify: [w, m]}
outlets:
  w: {webhook: "https://h/x", ca_file: /p/WebhookSpec.ca_file, token_file: /p/WebhookSpec.token_file}
  m: {mail: a@b.c, from: a@b.c, server: "smtps://h:465", user: u, ca_file: /p/MailSpec.ca_file,
      password_file: /p/MailSpec.password_file}
"""
ELSEWHERE = {"UploadSpec.upload": "TapSpec.directory"}


def kinds_of(record: type[Record]) -> Iterator[type[Record]]:
    """Yield the records that no other one is derived from; of each, the one that `slots=True` made."""
    below = [one for one in record.__subclasses__() if "__slots__" in vars(one)]
    yield from (record,) if not below else ()
    for one in below:
        yield from kinds_of(one)


def paths() -> list[str]:
    """Return all settings that are paths, as RECORD.KEY."""
    for kinds in (MEDIA, PROTOCOLS, DEVICES, OUTLETS):
        for name in kinds.ours():
            kinds.find(name)
    ours = [one for one in kinds_of(Record) if not one.__module__.startswith("tests.")]
    return sorted(
        f"{one.__name__}.{key}"
        for one in ours
        for key, setting in settings(one).items()
        if repr(get_args(Path)[1]) in repr(setting.annotation)
    )


@pytest.mark.parametrize("path", paths())
def test_each_path_of_a_topology_is_needed(path: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "NamesSpec.file").write_text("one\n")
    shutil.copy(ROOT / "examples" / "engine" / "engine.dbc", tmp_path / "Dbc.file.dbc")
    file = tmp_path / "t.yaml"
    file.write_text("name: t\n" + PATHS.replace("DIR", str(tmp_path)))
    found = [str(part) for _, need in needs_of(wired(load(file)), "c") for part in need]
    assert any(f"/{ELSEWHERE.get(path, path)}" in part for part in found)
