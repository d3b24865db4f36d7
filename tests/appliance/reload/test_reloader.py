"""Tests of what a reload costs: each fact is found once, off the loop, and only what differs is touched."""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from appliance.compose import Appliance
from appliance.parts.bridge import BridgePart
from appliance.parts.bus import BusPart
from appliance.reload.reloader import Reloader
from bus.names import table_of
from tests.helpers.certificates import own_tls
from tests.helpers.ports import free_port
from topologies.loading.loader import load
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import Wiring, wired

BRIDGES = 120
HEAD = """\
name: plant
gateways: {{gw: {{node: 1}}}}
names: {{file: names.txt}}
buses:
  hall: {{on: gw, listen: [{{url: "ipc://{0}/hall", trunk: true}}{1}]}}
  yard: {{on: gw, listen: [{{url: "ipc://{0}/yard", trunk: true}}]}}
bridges:
"""
BRIDGE = "  b{0}: {{on: gw, pattern: [{1}], join: [{{bus: hall}}, {{bus: yard, deny: out}}]}}\n"


def plant(directory: Path, more: str = "", changed: str = "p7") -> str:
    """Return a topology of many bridges; `changed` is the pattern of one, and `more` another address."""
    patterns = [f"p{number}" for number in range(BRIDGES)]
    patterns[7] = changed
    return HEAD.format(directory, more) + "".join(BRIDGE.format(*pair) for pair in enumerate(patterns))


class Calls(list[tuple[str, int]]):
    """The calls that cost: what was called, and on which thread."""

    def counts(self) -> Counter[str]:
        return Counter(name for name, _ in self)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    found = Calls()

    def watch(name: str, target: str, function: Callable[..., Any]) -> None:
        def called(*args: Any) -> Any:
            found.append((name, threading.get_ident()))
            return function(*args)

        monkeypatch.setattr(target, called)

    for name in ("topologies.wiring.segments._joints", "topologies.names._read"):
        module, _, function = name.rpartition(".")
        watch(function, name, getattr(import_module(module), function))
    for part in (BridgePart, BusPart):
        watch(part.__name__, f"{part.__module__}.{part.__name__}.revise", part.revise)
    return found


def read(file: str, _: Any = None) -> Wiring:
    """Read a file without its checks: a loop of buses is none of the reloader's business."""
    return wired(load(file))


@asynccontextmanager
async def reloading(directory: Path) -> AsyncIterator[tuple[Appliance, Path, Reloader]]:
    """Run a plant, with its file and what reloads it."""
    file = directory / "plant.yaml"
    (directory / "names.txt").write_text("fridge\n")
    file.write_text(plant(directory))
    appliance = Appliance(resolve(read(str(file)), "gw"))
    appliance.open(asyncio.get_running_loop())
    try:
        yield appliance, file, Reloader(appliance, str(file), read)
    finally:
        appliance.close()


async def test_a_reload_works_out_each_fact_once_and_never_on_the_loop(tmp_path: Path, calls: Calls) -> None:
    async with reloading(tmp_path) as (appliance, file, reloader):
        assert calls.counts() == {"_joints": 1, "_read": 1}
        calls.clear()
        parts = dict(appliance.parts)
        file.write_text(plant(tmp_path, f', "ipc://{tmp_path}/more"'))
        outcome = await reloader.reload()
        assert outcome.changes == (f"added bus hall: listen ipc://{tmp_path}/more",)
        assert calls.counts() == {"_joints": 1, "_read": 1, "BusPart": 1}
        assert threading.get_ident() not in {thread for _, thread in calls}
        assert appliance.parts == parts


async def test_of_many_bridges_a_reload_touches_the_one_that_differs(tmp_path: Path, calls: Calls) -> None:
    async with reloading(tmp_path) as (appliance, file, reloader):
        calls.clear()
        sides = {title: part.hub for title, part in appliance.parts.items()}
        file.write_text("# a line more, so that all others move down\n" + plant(tmp_path, changed="fridge"))
        outcome = await reloader.reload()
        assert outcome.changes == ("changed bridge b7: pattern",)
        assert calls.counts() == {"_joints": 1, "_read": 1, "BridgePart": 1}
        assert {title: part.hub for title, part in appliance.parts.items()} == sides
        calls.clear()
        assert (await reloader.reload()).changes == ()
        assert calls.counts() == {"_joints": 1, "_read": 1}


async def test_what_failed_is_tried_again_although_its_record_stays(tmp_path: Path) -> None:
    async with reloading(tmp_path) as (_, file, reloader):
        (tmp_path / "more").mkdir()  # no socket can be made there
        file.write_text(plant(tmp_path, f', "ipc://{tmp_path}/more"'))
        assert len((await reloader.reload()).failed) == 1
        (tmp_path / "more").rmdir()
        again = await reloader.reload()
        assert (again.failed, again.changes) == ((), (f"added bus hall: listen ipc://{tmp_path}/more",))


async def test_new_names_are_in_a_table_before_the_loop_needs_it(tmp_path: Path) -> None:
    async with reloading(tmp_path) as (appliance, file, _):
        (tmp_path / "names.txt").write_text("door\n")
        following = appliance.prepare(resolve(read(str(file)), "gw"))
        made = table_of.cache_info().misses
        appliance.change(following)
        assert table_of.cache_info().misses == made


async def test_a_reload_is_made_for_what_runs_and_for_nothing_else(tmp_path: Path) -> None:
    async with reloading(tmp_path) as (appliance, file, _):
        one, other = (appliance.prepare(resolve(read(str(file)), "gw")) for _ in range(2))
        assert appliance.change(one) == []
        with pytest.raises(AssertionError):
            appliance.change(other)


async def test_a_certificate_that_is_half_written_changes_nothing(tmp_path: Path) -> None:
    """The address was closed, and its peers were gone, until the next reload."""
    tls = own_tls(tmp_path)
    words = f"cert_file: {tls.cert_file}, ca_file: {tls.ca_file}, require_peer_cert: true"
    listen = f", {{url: 'tls+tcp://127.0.0.1:{free_port()}', tls: {{{words}}}}}"
    async with reloading(tmp_path) as (appliance, file, reloader):
        file.write_text(plant(tmp_path, listen))
        assert (await reloader.reload()).error == ""
        for path in filter(None, (tls.cert_file, tls.ca_file)):
            whole, rows = Path(path).read_bytes(), [(row.link, row.failure) for row in appliance.rows()]
            Path(path).write_bytes(whole[:-50])
            outcome = await reloader.reload()
            assert outcome.error.startswith(f"{path} is cut off: the certificate that begins in line")
            assert [(row.link, row.failure) for row in appliance.rows()] == rows
            Path(path).write_bytes(whole)
            outcome = await reloader.reload()
            assert (outcome.error, outcome.failed, len(outcome.changes)) == ("", (), 1)
