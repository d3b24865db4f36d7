"""A kind of device that another distribution adds: for files, `check`, `show` and `run` nothing changes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import ClassVar

import pytest

from appliance.commands.check import findings_of
from appliance.compose import Appliance
from appliance.parts.device import DevicePart
from appliance.parts.kinds import part_class
from appliance.status.snapshot import snapshot
from bus.errors import LinkError, TopologyError
from bus.wire.batch import from_payloads
from devices import DEVICES
from tests.devices.echo import Echo, EchoSpec
from tests.devices.tap.tap_support import member
from tests.helpers import ROOT
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.topologies.support import errors, findings, said
from topologies.loading.loader import loads
from topologies.names import known
from topologies.picture.show import show
from topologies.writing import reference

HEAD = "name: t\ngateways: {gw: }\n"
VALUE = "tests.devices.echo:EchoSpec"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution is installed that adds the kinds `echo` and `parrot`."""

    kinds = {"echo": VALUE, "parrot": "tests.devices.echo:ParrotSpec"}

    def entry_points(group: str) -> list[metadata.EntryPoint]:
        return [metadata.EntryPoint(*one, group) for one in kinds.items() if group == "buscoupler.devices"]

    monkeypatch.setattr(metadata, "entry_points", entry_points)
    vars(DEVICES).pop("_others", None)
    yield
    vars(DEVICES).pop("_others", None)


def plant(devices: str, more: str = "") -> str:
    url = f"tcp://127.0.0.1:{free_port()}"
    return HEAD + f"buses: {{p: {{on: gw, listen: '{url}'}}, q: {{on: gw}}}}\ndevices: {{{devices}}}\n{more}"


def test_an_entry_has_the_key_of_one_kind() -> None:
    assert findings(plant("e: {on: gw, echo: p}")) == []
    two = findings(plant("e: {on: gw, echo: p, tap: p, directory: /d}"))
    assert [(finding.line, finding.column) for finding in two] == [(4, 14)]
    assert (
        "one of tap, log, catalog, cache, proxy, syndication, upload, telemetry, "
        "echo, parrot; found tap, echo" in two[0].text
    )
    odd = findings(plant("e: {on: gw, echo: p, [x]: y}"))
    assert [finding.text for finding in odd] == ["a key must be text, found a list"]
    none = findings(plant("e: {on: gw}"))
    assert (
        "a device is one of tap, log, catalog, cache, proxy, syndication, upload, telemetry, "
        "echo, parrot; found none" in none[0].text
    )
    assert none[0].line == 4


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{on: gw, ehco: p}", 'unknown key "ehco"; did you mean "echo"?'),
        ("{on: gw, tpa: p, directory: /d}", 'unknown key "tpa"; did you mean "tap"?'),
        ("{on: gw, echo: p, wrod: x}", 'unknown key "wrod"; did you mean "word"?'),
        ("{on: gw, echo: p, directroy: x}", 'unknown key "directroy"; did you mean "directory"?'),
        ("{echo: p}", '"on" is missing'),
        ("{on: gw, echo: r}", 'no bus "r"'),
        ("5", "expected a mapping"),
        ("[on, tap]", "expected a mapping"),
        ("", "expected a mapping"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(entry: str, words: str) -> None:
    found = findings(plant(f"e: {entry}"))
    assert [finding.text for finding in found if words in finding.text] != []
    assert all(finding.line == 4 and finding.column > 1 for finding in found)


def test_a_kind_that_cannot_be_imported_is_an_error_of_its_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [metadata.EntryPoint("echo", "nowhere:Echo", "buscoupler.devices")]
    monkeypatch.setattr(metadata, "entry_points", lambda group: broken)
    assert 't.yaml:4:14: error: devices.e: "echo" of nowhere:Echo cannot be imported' in said(
        plant("e: {on: gw, echo: p}")
    )


def test_check_knows_its_buses_addresses_and_patterns() -> None:
    far = HEAD.replace("gw: }", "gw: , far: }") + (
        "buses: {p: {on: gw, listen: 'tcp://127.0.0.1:5'}}\ndevices: {e: {on: far, echo: p}}\n"
    )
    assert errors(far) == ["p does not run on far, where its echo e runs"]
    port = free_port()
    same = f"listen: 'tcp://127.0.0.1:{port}'"
    text = plant(f"e: {{on: gw, echo: p, {same}}}, f: {{on: gw, echo: p, {same}}}")
    assert errors(text) == [f"TCP port {port} is taken by device e already (line 4)"]
    assert "fridge" in known(loads(plant("e: {on: gw, echo: p, pattern: fridge/7}")))


def test_check_here_asks_for_its_needs(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(plant("e: {on: gw, echo: p, directory: /proc/self/status/x}"))
    assert [f.level for f in findings_of(str(file), here=True) if "/proc/self/status/x" in f.text] == [
        "error"
    ]


def test_show_draws_it() -> None:
    topology = loads(plant("e: {on: gw, echo: [p, q], listen: 'tcp://127.0.0.1:7'}"))
    assert "   └─ device e\n      ├─ echo on bus p, bus q\n      └─ listen tcp://127.0.0.1:7" in show(
        topology
    )
    drawn = show(topology, "mermaid")
    assert '[("device e")]' in drawn
    assert drawn.count("---") == 2


def test_the_reference_page_has_it_once_it_is_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {"tap": "devices.tap.device:TapSpec", "echo": VALUE}
    monkeypatch.setitem(vars(DEVICES), "_ours", ours)
    page = reference.page()
    assert "| `echo` | [Echo](#echo) |  | says everything again |" in page
    assert "## Echo\n\nA device that says everything again.\n" in page
    assert "| `word` | text | `echo ` | what it puts first |" in page


def test_no_kind_has_the_key_of_another_among_its_settings() -> None:
    from bus.schema import settings

    for key in DEVICES.ours():
        kind = DEVICES.find(key)
        assert kind is not None
        assert [*filter(DEVICES.ours().__contains__, settings(kind))] == [key]


async def echoed(text: str, appliance: Appliance, message: bytes) -> list[bytes]:
    """Return what a member of the bus hears, once it has said `message` and an answer has come."""
    async with member(str(loads(text).buses["p"].listen[0].url)) as (hub, ear):
        hub.publish(from_payloads([message]), ear)
        await until(lambda: len(ear.messages) > 0)
        return list(ear.messages)


async def test_it_runs_and_changes_while_it_runs() -> None:
    text = plant("e: {on: gw, echo: [p, q]}")
    appliance = appliance_of(loads(text), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        assert await echoed(text, appliance, b"a") == [b"echo a"]
        assert lines(appliance, text) == []
        word = text.replace("[p, q]", "[p, q], word: again")
        assert lines(appliance, word) == ["changed device e: word"]
        assert await echoed(text, appliance, b"b") == [b"againb"]
        one = text.replace("[p, q]", "p")
        assert lines(appliance, one) == ["changed device e: echo, word", "removed device e: q"]
        assert await echoed(text, appliance, b"c") == [b"echo c"]
        assert lines(appliance, text[: text.index("devices:")]) == ["removed device e"]
        await until(lambda: appliance.parts["bus p"].hub.pipes == ())
        assert lines(appliance, text) == ["added device e"]
        assert await echoed(text, appliance, b"d") == [b"echo d"]
    finally:
        appliance.close()
    assert all(hub.pipes == () for hub in appliance.hubs())


async def test_a_bus_that_gets_its_first_trunk_keeps_its_devices() -> None:
    text = plant("e: {on: gw, echo: p}")
    appliance = appliance_of(loads(text), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        more = f"{{url: 'tcp://127.0.0.1:{free_port()}', trunk: true}}"
        url = str(loads(text).buses["p"].listen[0].url)
        lines(appliance, text.replace(f"'{url}'", f"['{url}', {more}]"))
        assert await echoed(text, appliance, b"a") == [b"echo a"]
    finally:
        appliance.close()


async def test_a_device_that_is_of_another_kind_now_is_made_anew(tmp_path: Path) -> None:
    text = plant("e: {on: gw, echo: p}")
    tap = text.replace("echo: p", f"tap: p, directory: {tmp_path}, yields: false")
    appliance = appliance_of(loads(text), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        assert lines(appliance, text.replace("echo:", "parrot:")) == ["changed device e: kind"]
        assert await echoed(text, appliance, b"a") == [b"a"]
        assert lines(appliance, tap) == ["changed device e: kind"]
        assert lines(appliance, text) == ["changed device e: kind"]
        assert await echoed(text, appliance, b"a") == [b"echo a"]
    finally:
        appliance.close()


def lines(appliance: Appliance, text: str) -> list[str]:
    return [change.line() for change in reloaded(appliance, loads(text))]


async def test_what_one_of_its_buses_brings_goes_to_no_other() -> None:
    ports = free_port(), free_port()
    listening = "{name}: {{on: gw, listen: 'tcp://127.0.0.1:{port}'}}"
    buses = [listening.format(name=name, port=port) for name, port in zip("pq", ports, strict=True)]
    text = HEAD + f"buses: {{{', '.join(buses)}}}\ndevices: {{e: {{on: gw, echo: [p, q]}}}}\n"
    appliance = appliance_of(loads(text), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        async with member(f"tcp://127.0.0.1:{ports[1]}") as (hub, ear):
            assert await echoed(text, appliance, b"a") == [b"echo a"]
            hub.publish(from_payloads([b"b"]), ear)
            await until(lambda: len(ear.messages) > 0)
            assert ear.messages == [b"echo b"]
    finally:
        appliance.close()


async def test_a_defect_of_a_service_is_counted_and_its_bus_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*_: object) -> None:
        raise RuntimeError("a defect")

    text = plant("e: {on: gw, echo: p}")
    appliance = appliance_of(loads(text), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Echo, "heard", raises)
            async with member(str(loads(text).buses["p"].listen[0].url)) as (hub, ear):
                hub.publish(from_payloads([b"a", b"b"]), ear)
                stats = appliance.parts["device e"].hubs[0].pipes[-1].stats
                await until(lambda: stats.dropped == {"failed": 2})
        assert (stats.balance(), appliance.parts["device e"].links[-1].fault) == (0, "RuntimeError: a defect")
        assert await echoed(text, appliance, b"a") == [b"echo a"]
    finally:
        appliance.close()


async def test_a_service_that_cannot_start_is_tried_again_at_the_next_reload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuses(*_: object) -> None:
        raise LinkError("no such peer")

    text = plant("e: {on: gw, echo: p}")
    appliance = appliance_of(loads(text[: text.index("devices:")]), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Echo, "start", refuses)
            assert lines(appliance, text) == ["failed device e: no such peer"]
        assert lines(appliance, text) == []
        assert await echoed(text, appliance, b"a") == [b"echo a"]
    finally:
        appliance.close()


async def test_top_sees_it() -> None:
    text = plant("e: {on: gw, echo: p}")
    appliance = appliance_of(loads(text), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        await echoed(text, appliance, b"a")
        status = json.loads(json.dumps(snapshot(appliance.view())))
        assert {"name": "e", "state": "up"} in status["links"]
        bus = next(hub for hub in status["hubs"] if hub["name"] == "p")
        assert {"device e"} < {link["name"] for link in bus["links"]}
        hub = next(hub for hub in status["hubs"] if hub["name"] == "e on p")
        seat = next(pipe for pipe in hub["pipes"] if pipe["name"] == "e")
        assert (seat["received"], seat["sent"], seat["balance"]) == (1, 1, 0)
    finally:
        appliance.close()


def test_a_tap_alone_says_what_to_add(tmp_path: Path) -> None:
    text = plant(f"t: {{on: gw, tap: [p, q], directory: {tmp_path}}}")
    with pytest.raises(TopologyError, match=r"t is a tap, .* add --only p --only q"):
        appliance_of(loads(text), "gw", ["t"], tmp_path)
    part = appliance_of(loads(text), "gw", ["t", "p"], tmp_path).parts["device t"]
    assert isinstance(part, DevicePart)
    assert [joined.title for joined in part.joined] == ["bus p"]


def test_a_record_that_names_no_kind_of_part_says_which_there_are() -> None:
    class Odd(EchoSpec):
        part: ClassVar[str] = "ghost"

    with pytest.raises(TypeError, match='Odd: part = "ghost" is no kind of part: service, recorder'):
        part_class(Odd(on="gw", echo=("p",)))


def test_only_without_its_name_leaves_it_out(tmp_path: Path) -> None:
    text = plant("e: {on: gw, echo: p}")
    assert [*appliance_of(loads(text), "gw", ["p"], tmp_path).parts] == ["bus p"]
    assert [*appliance_of(loads(text), "gw", ["e"], tmp_path).parts] == ["device e"]


@contextmanager
def running(*arguments: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{path}"}
    command = [sys.executable, "-m", "buscoupler", "run", *arguments]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)


async def test_a_process_of_its_own_meets_the_bus_of_another(tmp_path: Path) -> None:
    """Processes find the kind by the entry points of a distribution, as after its installation."""
    distribution = tmp_path / "echo_device-1.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-device\nVersion: 1\n")
    (distribution / "entry_points.txt").write_text(f"[buscoupler.devices]\necho = {VALUE}\n")
    file = tmp_path / "t.yaml"
    file.write_text(text := plant("e: {on: gw, echo: p}"))
    place = ("--run-directory", str(tmp_path))
    with (
        running(str(file), "--only", "p", *place, path=tmp_path) as bus,
        running(str(file), "--only", "e", *place, path=tmp_path) as device,
    ):
        for process, title in ((bus, "bus p"), (device, "device e")):
            assert process.stdout is not None
            assert title in await asyncio.to_thread(process.stdout.readline)
        async with member(str(loads(text).buses["p"].listen[0].url)) as (hub, ear):

            def answered() -> bool:
                hub.publish(from_payloads([b"a"]), ear)  # again: the device may not have dialled the bus yet
                return bool(ear.messages)

            await until(answered)
            assert ear.messages[0] == b"echo a"
    assert (bus.returncode, device.returncode) == (0, 0)
