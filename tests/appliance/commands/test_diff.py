"""`diff` says beforehand what a reload then does."""

import asyncio
import json
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.ports import free_port
from topologies.loading.loader import loads
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired

TEXT = """\
name: t
gateways: {{gw: {{address: 127.0.0.1}}, far: {{address: 127.0.0.2}}}}
buses:
  p: {{on: gw, listen: ["tcp://127.0.0.1:{0}"]}}
  q: {{on: gw, listen: ["tcp://127.0.0.1:{1}"]}}
  r: {{on: far, listen: ["tcp://127.0.0.2:{2}"]}}
bridges: {{j: {{on: gw, join: [{{bus: p}}, {{bus: q}}, {{tcp: {{host: 127.0.0.1, port: {3}}}}}]}}}}
devices: {{last: {{on: gw, cache: p, values: 5}}}}
"""
Out = pytest.CaptureFixture[str]
Files = tuple[Path, Path, str]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    text = TEXT.format(*(free_port() for _ in range(4)))
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(text)
    two.write_text(text)
    return one, two, text


def lines(capsys: Out) -> list[str]:
    return [line.strip() for line in capsys.readouterr().out.splitlines()]


def test_equal_files_differ_in_nothing(files: Files, capsys: Out) -> None:
    assert main(["diff", str(files[0]), str(files[1])]) == 0
    assert lines(capsys) == ["gw:", "nothing differs", "far:", "nothing differs"]


CHANGES = [
    ("p: {on: gw, listen: [", "p: {on: gw, queue_bytes: 4000000, listen: [", [True]),
    ("p: {on: gw, listen: [", 'p: {on: gw, listen: ["inproc://diff", ', [None]),
    ("{bus: p}, ", "{bus: p, deny: a}, ", [True]),
    ("gateways: {gw: {", "gateways: {gw: {memory_bytes: 8388608, ", [None]),
    ("gateways: {gw: {", "gateways: {gw: {busy_poll_us: 20, ", [None]),
    ("gateways: {gw: {", "gateways: {gw: {keep_connections_of: 10.0.0.0/8, ", [None]),
    ("values: 5", "values: 6", [False]),
    ("r: {on: far, ", "r: {on: far, queue_bytes: 4000000, ", []),
]


@pytest.mark.parametrize(
    ("old", "new", "fates"),
    CHANGES,
    ids=["limit", "address", "filter", "memory", "polling", "kept", "device", "elsewhere"],
)
async def test_a_reload_does_what_diff_said(
    files: Files, old: str, new: str, fates: list[bool | None]
) -> None:
    text = files[2]
    assert old in text
    foreseen, kept = appliance_of(loads(text), "gw").foresee(
        resolve(wired(loads(text.replace(old, new))), "gw")
    )
    running = appliance_of(loads(text), "gw")
    running.open(asyncio.get_running_loop())
    try:
        before = running.links()
        done = reloaded(running, loads(text.replace(old, new)))
        stayed = [link in running.links() for link in before]
    finally:
        running.close()
    assert [change.line() for change in foreseen] == [change.line() for change in done]
    assert [change.stays for change in foreseen] == fates
    assert all(stayed) == (False not in fates)
    assert not {change.part for change in foreseen} & set(kept)


@pytest.mark.parametrize(
    "port", ["uart: /dev/ttyS9", "multicast: {group: 239.9.9.9, port: 9999, interface: lo}"]
)
def test_which_settings_open_a_medium_anew(port: str) -> None:
    head = "name: t\ngateways: {gw: {address: 127.0.0.1}}\nbuses: {p: {on: gw}}\n"
    text = head + f"bridges: {{j: {{on: gw, join: [{{bus: p}}, {{{port}}}]}}}}\n"
    shed = text.replace("}]", ", shed: oldest}]")
    (change,), _ = appliance_of(loads(text), "gw").foresee(resolve(wired(loads(shed)), "gw"))
    assert (change.detail, change.stays) == ("shed", "uart" in port)


def test_lines_for_people_and_for_programs(files: Files, capsys: Out) -> None:
    one, two, text = files
    two.write_text(text.replace("name: t", "name: u").replace("{bus: p}, ", "{bus: p, deny: a}, "))
    assert main(["diff", str(one), str(two), "--gateway", "gw"]) == 1
    assert lines(capsys) == [
        "gw:",
        "restart: the name is u instead of t: its run directory has the old name until it restarts",
        "changed bridge j: bus p: deny (stays connected)",
        "kept bus p",
        "kept bus q",
        "kept device last",
    ]
    assert main(["diff", "--json", str(one), str(two), "--gateway", "gw"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["changes"][0]["detail"] == "deny"
    assert set(record["kept"]) == {"bus p", "bus q", "device last"}


def test_a_gateway_that_comes_or_goes_needs_a_start_or_an_end(files: Files, capsys: Out) -> None:
    one, two, text = files
    two.write_text(text.replace("far", "near"))
    assert main(["diff", str(one), str(two)]) == 1
    shown = lines(capsys)
    assert "restart: far is not in t: stop it; a reload is refused" in shown
    assert "restart: near is new: start it" in shown


def test_a_file_with_errors_is_neither_equal_nor_different(files: Files, capsys: Out) -> None:
    one, two, text = files
    two.write_text(text.replace("buses:", "busses:"))
    assert main(["diff", str(one), str(two)]) == 2
    assert f"{two}:3:" in capsys.readouterr().err
    assert main(["diff", str(one), str(one), "--gateway", "none"]) == 2
    assert 'no gateway "none"' in capsys.readouterr().err
