"""Tests that nothing blocks the event loop: at every start, and in every kind of reload.

Blocking calls are seen by Python's audit events, not by time, so the tests find them on any machine.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import wraps
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import pytest

from appliance.alone import Alone
from appliance.plant.note import GATEWAY
from appliance.version import version
from appliance.web.assets import asset
from appliance.web.messages import Request
from appliance.web.pages import FILES, Pages
from bus.leases.service import LeasingBroker
from bus.machine.wake_hook import WakefulLoop
from devices.dbp.catalog.device import CatalogSpec
from devices.dbp.catalog.service import Catalog
from devices.raw import RawDevice
from devices.syndication.device import SyndicationSpec
from devices.syndication.service import Syndication
from tests.helpers.appliances import appliance_of
from tests.helpers.certificates import own_tls
from tests.helpers.loopwatch import LoopWatch
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads
from topologies.model import Topology
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired

WATCH: Final = LoopWatch()
KNOWN: Final = {
    "devices/child.py": "the writer of a tap starts on the loop: milliseconds",
    "devices/disk.py": "a lock that is taken or not at once, where `Service.paths` has been looked at",
    "devices/dbp/catalog/records.py": "a small file, where `Service.paths` has been looked at",
}
ANSWERS: Final = (
    "/status.json", "/plant.json", "/topology.svg", "/metrics", "/health", "/history.json", "/ready",
    "/healthz", "/schema.json", "/robots.txt", "/events", GATEWAY,
)  # fmt: skip
BASE: Final = """\
name: plant
gateways: {gw: {address: 127.0.0.1, status: {serve: false}}, other: {address: 127.0.0.2}}
buses: {hall: {on: gw, listen: 'tcp://127.0.0.1:PORT0'}}
"""
FULL: Final = """\
name: plant
gateways:
  gw:
    address: 127.0.0.1
    node: 1
    status: {listen: 'https://127.0.0.1:PORT1', token_file: DIR/token, tls: TLS}
  other: {address: 127.0.0.2, node: 2}
names: {file: names}
keys: [DIR/key]
buses:
  hall:
    on: gw
    listen:
      - tcp://127.0.0.1:PORT0
      - {url: 'tls+tcp://127.0.0.1:PORT2', tls: TLS}
      - {url: 'wss://127.0.0.1:PORT3', tls: TLS}
      - {url: 'tcp://127.0.0.1:PORT4', trunk: true, beacon: true}
      - ws://localhost:PORT9
      - ipc://DIR/bus
    dial: [{url: 'tls+tcp://localhost:PORT2', tls: TLS}]
  yard: {on: gw, listen: 'tcp://127.0.0.1:PORT5'}
  away: {on: other, listen: [{url: 'tcp://127.0.0.2:PORT5', trunk: true}]}
brokers:
  main: {on: gw, listen: ['tcp://127.0.0.1:PORT6', {url: 'tls+tcp://127.0.0.1:PORT7', tls: TLS}]}
bridges:
  lines: {on: gw, join: [{bus: hall}, {uart: /dev/no-such}, {uart: 'socket://localhost:9'}]}
  can:
    on: gw
    join: [{bus: hall}, {can: {channel: 239.74.163.9, interface: udp_multicast, options: {port: PORT8}}}]
  i2c: {on: gw, pattern: i, join: [{bus: yard}, {i2c: {bus: 250, targets: [16]}}]}
  net: {on: gw, pattern: g, join: [{bus: yard}, {multicast: {group: 239.9.9.9, port: PORT8, interface: lo}}]}
  tmq: {on: gw, pattern: t, join: [{bus: yard}, {tmq: {}}]}
  served: {on: gw, pattern: s, join: [{bus: yard}, {tcp: {mode: listen, host: 127.0.0.1, port: PORT10}}]}
  motor: {on: [gw, other], pattern: motor, join: [{bus: {gw: hall, other: away}}, {can: can9}]}
devices:
  list: {on: gw, catalog: 'tcp://127.0.0.1:PORT11', records: DIR/records}
  news: {on: gw, syndication: 'tcp://127.0.0.1:PORT12', database: DIR/news}
  last: {on: gw, cache: [hall]}
  cap: {on: gw, tap: [hall], directory: DIR/capture}
  door: {on: gw, proxy: 'tcp://127.0.0.1:PORT11', listen: 'tls+tcp://127.0.0.1:PORT13', tls: TLS}
"""


@pytest.fixture
def ports() -> list[int]:
    return [free_port() for _ in range(14)]


@pytest.fixture(autouse=True)
def _forget() -> None:
    """Forget what was seen, and what tests before in this process have had read."""
    WATCH.seen.clear()
    for kept in (asset, version):
        kept.cache_clear()


def on_our_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test on the loop that gateways have."""

    @wraps(test)
    def run(*args: Any, **more: Any) -> None:
        with asyncio.Runner(loop_factory=WakefulLoop, debug=False) as runner:  # debugging reads sources
            runner.run(test(*args, **more))

    return run


def blocked() -> list[str]:
    return [one for one in WATCH.seen if not any(known in one for known in KNOWN)]


def topology(text: str, folder: Path, ports: list[int]) -> Topology:
    own_tls(folder)
    (folder / "token").write_text("0123456789abcdef0123456789abcdef")
    (folder / "names").write_text("alpha\nbeta\n")
    (folder / "key").write_text(f"buscoupler-key 1 {'5a' * 32}\n")
    (folder / "key").chmod(0o600)
    text = text.replace("TLS", "{cert_file: DIR/own.pem, ca_file: DIR/ca.pem}")
    for number in reversed(range(len(ports))):
        text = text.replace(f"PORT{number}", str(ports[number]))
    return loads(text.replace("DIR", str(folder)), str(folder / "plant.yaml"))


@on_our_loop
async def test_a_gateway_with_everything_starts_without_a_blocking_call(
    tmp_path: Path, ports: list[int]
) -> None:
    appliance = appliance_of(topology(FULL, tmp_path, ports), "gw")
    try:
        with WATCH.on():
            appliance.open(asyncio.get_running_loop())
            await asyncio.sleep(0.2)
        assert blocked() == []
    finally:
        appliance.close()
        await until(lambda: not any(thread.name == "aside" for thread in threading.enumerate()))


@on_our_loop
async def test_no_reload_makes_a_blocking_call(tmp_path: Path, ports: list[int]) -> None:
    """Everything comes, everything changes, everything goes."""
    base, full = topology(BASE, tmp_path, ports), topology(FULL, tmp_path, ports)
    changed = FULL.replace("pattern: t", "pattern: u").replace("records: DIR/records", "strict: true")
    changed = changed.replace("keys: [DIR/key]\n", "").replace("cap: {on: gw,", "cap: {on: gw, keep_days: 3,")
    appliance = appliance_of(base, "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        for step in (full, topology(changed, tmp_path, ports), full, base):
            resolved = await asyncio.to_thread(resolve, wired(step), "gw")
            following = await asyncio.to_thread(appliance.prepare, resolved)
            with WATCH.on():
                failed = [one for one in appliance.change(following) if one.verb == "failed"]
                await asyncio.sleep(0.2)
            assert (failed, blocked()) == ([], [])
    finally:
        appliance.close()
        await until(lambda: not any(thread.name == "aside" for thread in threading.enumerate()))


@on_our_loop
async def test_the_other_services_start_without_a_blocking_call(tmp_path: Path, ports: list[int]) -> None:
    catalog = CatalogSpec(on="", catalog=(f"tcp://127.0.0.1:{ports[0]}",), records=str(tmp_path / "records"))
    news = SyndicationSpec(on="", syndication=(f"tcp://127.0.0.1:{ports[1]}",), database=str(tmp_path / "n"))
    made: list[Alone | LeasingBroker | RawDevice] = [
        Alone(Catalog("catalog", catalog)),
        Alone(Syndication("news", news)),
        LeasingBroker([f"tcp://127.0.0.1:{ports[2]}"]),
        RawDevice([f"tcp://localhost:{ports[3]}", f"ipc://{tmp_path}/bus"], ["tcp://localhost:1"]),
    ]
    try:
        with WATCH.on():
            for one in made:
                one.open(asyncio.get_running_loop())
            await asyncio.sleep(0.1)
        assert blocked() == []
    finally:
        for one in made:
            one.close()


@on_our_loop
async def test_no_answer_of_the_page_makes_a_blocking_call(tmp_path: Path, ports: list[int]) -> None:
    appliance = appliance_of(topology(BASE, tmp_path, ports), "gw")
    pages, paths = Pages(appliance.view()), [*FILES, *ANSWERS]
    try:
        appliance.open(asyncio.get_running_loop())
        await asyncio.to_thread(appliance.view().prepare)
        with WATCH.on():
            found = [
                (await pages.answer(Request("GET", path, {"alone": ""}, {}, ()))).status for path in paths
            ]
        assert (set(found), blocked()) == ({HTTPStatus.OK}, [])
    finally:
        appliance.close()


@on_our_loop
async def test_the_watch_sees_a_blocking_call(tmp_path: Path) -> None:
    with WATCH.on():
        tmp_path.joinpath("file").write_text("x")
    assert len(blocked()) == 1
