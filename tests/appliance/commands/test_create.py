"""`create` writes files that `check` accepts, from flags, answers and a machine's devices."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from appliance.commands import create
from appliance.machine import plugged
from appliance.probe.endpoint import parse_endpoint
from bus.schema import settings_of
from tests.helpers.rights import no_room
from topologies.loading.loader import load, loads

Out = pytest.CaptureFixture[str]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of a machine with a serial adapter, a CAN FD and a CAN interface, and two I2C buses."""
    root = tmp_path / "root"
    (root / "dev/serial/by-id").mkdir(parents=True)
    (root / "dev/serial/by-id/usb-FTDI_FT232R_A50285BI-if00-port0").touch()
    for name, (kind, mtu) in {"can0": ("280", "72"), "can1": ("280", "16"), "eth0": ("1", "1500")}.items():
        (root / "sys/class/net" / name).mkdir(parents=True)
        (root / "sys/class/net" / name / "type").write_text(f"{kind}\n")
        (root / "sys/class/net" / name / "mtu").write_text(f"{mtu}\n")
    for number in (1, 13):
        (root / f"dev/i2c-{number}").touch()
    monkeypatch.setattr(create, "found", lambda: plugged.found(root))
    monkeypatch.setattr(create, "i2c_buses", lambda: plugged.i2c_buses(root))
    return root


def test_what_is_plugged_in_is_joined(machine: Path, tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "mill.yaml"
    assert main(["create", str(file), "--gateway", "gw", "--yes"]) == 0
    topology = load(file)
    assert topology.name == "mill"
    labels = [side.medium.label() for side in topology.bridges["media"].at("gw") if side.medium]
    port = "/dev/serial/by-id/usb-FTDI_FT232R_A50285BI-if00-port0"
    assert labels == [f"uart {port} 115200", "can can0 FD", "can can1"]
    assert "/dev/i2c-13 is there" in file.read_text()
    capsys.readouterr()
    assert main(["check", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: ok\n"


def test_flags_name_any_medium(machine: Path, capsys: Out) -> None:
    words = [
        "--join",
        "uart:/dev/ttyS9?baud=9600",
        "--join",
        "can:can7?node=4",
        "--join",
        "i2c:1?targets=8,9",
    ]
    where = ["--name", "on", "--gateway", "gw", "--address", "10.0.0.7", "--listen", "tcp://0.0.0.0:5"]
    assert main(["create", "-", *where, *words]) == 0
    topology = loads(capsys.readouterr().out)
    assert (topology.name, topology.gateways["gw"].address) == ("on", "10.0.0.7")
    assert topology.buses["plant"].listen[0].url == "tcp://0.0.0.0:5"
    shown = [repr(side.medium) for side in topology.bridges["media"].at("gw")[1:]]
    assert "baud=9600" in shown[0]
    assert "node=4" in shown[1]
    assert "age_ms=None" in shown[1]  # the default of files, not as on the command line
    assert "targets=(8, 9)" in shown[2]


def test_without_a_medium_there_is_a_bus(machine: Path, capsys: Out) -> None:
    assert main(["create", "-", "--nothing", "--gateway", "gw"]) == 0
    assert not loads(capsys.readouterr().out).bridges


def test_a_file_that_is_there_stays_unless_forced(machine: Path, tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("mine")
    assert main(["create", str(file), "--nothing"]) == 1
    assert "--force overwrites it" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert main(["create", str(file), "--nothing", "--force"]) == 0
    assert load(file).name == "t"


def test_what_check_refuses_is_not_written(machine: Path, tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "t.yaml"
    assert main(["create", str(file), "--nothing", "--address", "10.0.0.311"]) == 1
    assert "no IPv4" in capsys.readouterr().err
    assert not file.exists()
    with pytest.raises(SystemExit):
        main(["create", str(file), "--join", "tcp://127.0.0.1:5"])


def test_questions_have_answers_and_defaults(tmp_path: Path) -> None:
    terminal, end = pty.openpty()
    words = [
        sys.executable,
        "-m",
        "buscoupler",
        "create",
        str(tmp_path / "t.yaml"),
        "--join",
        "uart:/dev/ttyS9",
    ]
    program = subprocess.Popen(words, stdin=end, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    os.write(terminal, b"mill\ngw\n\n\n")
    shown, asked = program.communicate(timeout=30)
    os.close(end)
    os.close(terminal)
    assert program.returncode == 0, asked
    assert "name of the system [t]: " in asked
    topology = load(tmp_path / "t.yaml")
    assert (topology.name, list(topology.gateways)) == ("mill", ["gw"])
    assert "a bridge to uart /dev/ttyS9 115200" in shown


def test_editors_find_the_schema(machine: Path, capsys: Out) -> None:
    assert main(["create", "-", "--nothing"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert Path(first.partition("$schema=")[2]).is_file()


PROTOCOLS = [
    ("uart:/dev/ttyS9?protocol=nmea&root=gps", "{nmea: {root: [gps]}}"),
    ("uart:/dev/ttyS9?protocol=nmea", "nmea"),
    ("can:can7?protocol=raw&root=car", "{raw: {root: [car]}}"),
    ("frames:192.0.2.7:3001?protocol=lines&receive=scale/weight", "{lines: {receive: [scale, weight]}}"),
]


@pytest.mark.parametrize(("word", "text"), PROTOCOLS, ids=[text for _, text in PROTOCOLS])
def test_what_devices_speak_is_written_with_its_settings(
    machine: Path, tmp_path: Path, capsys: Out, word: str, text: str
) -> None:
    file = tmp_path / "plant.yaml"
    assert main(["create", str(file), "--yes", "--join", word]) == 0, capsys.readouterr().err
    assert f"        protocol: {text}\n" in file.read_text()
    side = load(file).bridges["media"].at(next(iter(load(file).gateways)))[1]
    spoken = parse_endpoint(word).protocol
    assert side.protocol is not None
    assert spoken is not None
    assert settings_of(side.protocol) == settings_of(spoken)


def test_a_database_is_named_from_where_the_command_ran(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out
) -> None:
    (tmp_path / "a.dbc").write_text('VERSION ""\nBO_ 1 M: 1 N\n SG_ S : 0|8@1+ (1,0) [0|0] "" N\n')
    (tmp_path / "etc").mkdir()
    monkeypatch.chdir(tmp_path)
    words = ["create", "etc/plant.yaml", "--yes", "--join", "can:can7?protocol=dbc&file=a.dbc"]
    assert main(words) == 0, capsys.readouterr().err
    assert f"file: {tmp_path / 'a.dbc'}" in (tmp_path / "etc/plant.yaml").read_text()


def test_on_a_full_disk_no_empty_file_is_left(machine: Path, tmp_path: Path, capsys: Out) -> None:
    with no_room():
        assert main(["create", str(tmp_path / "full.yaml"), "--yes", "--nothing"]) == 1
    assert "full.yaml: cannot write the topology: " in capsys.readouterr().err
    assert list(tmp_path.glob("*.yaml")) == []
