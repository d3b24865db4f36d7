"""Files of a running gateway are not for others, and nobody else can prepare the place of its sockets."""

import asyncio
import os
import stat
import sys
from pathlib import Path

import pytest

from appliance.commands.run import sockets_directory
from appliance.local.places import runtime_directories, runtime_directory
from appliance.local.responder import Responder
from bus.wire.batch import from_payloads
from tests.capture.capture_support import FRAMES
from tests.devices.tap.tap_support import member
from tests.helpers.peers import until
from tests.helpers.ports import free_port

STRANGER = 12_345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to another user")
TOPOLOGY = """\
name: plant
gateways: {{gw: {{}}}}
buses: {{b: {{on: gw, listen: "tcp://127.0.0.1:{0}"}}}}
logs: b
devices:
  recorder: {{on: gw, tap: b, directory: {place}/tap, yields: false}}
  lines: {{on: gw, log: b, directory: {place}/lines, yields: false}}
  store: {{on: gw, upload: {place}/tap, to: {place}/store, every_s: 1}}
  rooms: {{on: gw, syndication: "tcp://127.0.0.1:{1}"}}
  services: {{on: gw, catalog: "tcp://127.0.0.1:{2}", beacon: false}}
"""


def modes(place: Path) -> dict[str, int]:
    """Return the permissions of each file and directory."""
    return {
        str(path.relative_to(place)): stat.S_IMODE(path.lstat().st_mode)
        for path in place.rglob("*")
        if not path.is_socket() and path.name != ".making"
    }


@pytest.mark.parametrize(("umask", "files", "directories"), [(0, 0o640, 0o750), (0o077, 0o600, 0o700)])
async def test_nothing_that_a_gateway_writes_is_for_others(
    tmp_path: Path, socket_path: Path, umask: int, files: int, directories: int
) -> None:
    ports, place = [free_port() for _ in range(3)], socket_path.parent
    (tmp_path / "plant.yaml").write_text(TOPOLOGY.format(*ports, place=place))
    homes = {"XDG_STATE_HOME": str(place / "state"), "XDG_RUNTIME_DIR": str(place / "run")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "buscoupler", "run", str(tmp_path / "plant.yaml")),
        umask=umask, env={**os.environ, **homes}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert await process.stdout.readline()
        async with member(f"tcp://127.0.0.1:{ports[0]}") as (hub, _):
            hub.publish(from_payloads(FRAMES))
            await until(lambda: len(list(place.rglob("*.arrows"))) == 2)
            await until(lambda: len(list(place.rglob("*.sock"))) == 4)  # status, reload, traces, alarms
        running = modes(place)
    finally:
        process.terminate()
        await process.communicate()
    made = running | modes(place)
    assert any("tap" in name and name.endswith(".parquet") for name in made)
    assert any(name.endswith(".db") for name in made)
    for name, mode in made.items():
        wanted = 0o700 if "buscoupler-" in name else directories if "." not in Path(name).name else files
        assert mode == wanted, name


@as_root
def test_a_run_directory_of_another_user_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = sockets_directory(None, "plant", "gw")
    assert made == runtime_directory() / "plant" / "gw"
    os.chown(made, STRANGER, STRANGER)
    with pytest.raises(PermissionError, match="gw belongs to another user"):
        sockets_directory(None, "plant", "gw")
    with pytest.raises(PermissionError, match="gw belongs to another user"):
        sockets_directory(made, "plant", "gw")


async def test_no_door_is_opened_where_others_can_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(_: asyncio.StreamReader) -> bytes:
        return b""

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    responder = Responder(runtime_directory() / "device" / "1" / "status.sock", silent, "")
    await responder.open()
    responder.close()
    runtime_directory().chmod(0o777)
    with pytest.raises(PermissionError, match="can be changed by other users"):
        await responder.open()


@as_root
def test_what_others_prepared_is_no_place_to_look_for_gateways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    ours = runtime_directory()
    ours.mkdir(0o700)
    assert ours in runtime_directories()
    ours.chmod(0o777)
    assert ours not in runtime_directories()
    ours.chmod(0o700)
    ours.rename(tmp_path / "elsewhere")
    ours.symlink_to(tmp_path / "elsewhere")
    assert ours not in runtime_directories()
