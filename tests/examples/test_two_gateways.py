"""The worked example: two gateways with certificates, a key and MQTT over TLS, run as its file says."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.installed import Installed
from tests.helpers.peers import wait
from tests.helpers.ports import free_port

EXAMPLE = ROOT / "examples/two-gateways"
MOSQUITTO = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
SUBSCRIBE = shutil.which("mosquitto_sub")
pytestmark = pytest.mark.skipif(
    not (MOSQUITTO and SUBSCRIBE), reason="apt-get install mosquitto mosquitto-clients"
)
PORTS = range(25951, 25956)
LIMIT_S = 40.0
BUSCOUPLER = [sys.executable, "-m", "buscoupler"]


@pytest.fixture
def ports() -> dict[int, int]:
    """Ports in place of those that the example has: others may run it, too."""
    return {port: free_port() for port in PORTS}


@pytest.fixture
def start(tmp_path: Path, ports: dict[int, int]) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Give a function that starts a program in the folder of the example's copy."""
    installed = Installed(ROOT / "examples/medium-mqtt", tmp_path / "mqtt")
    env = installed.environment | {"XDG_RUNTIME_DIR": str(tmp_path / "run")}
    (tmp_path / "run").mkdir(mode=0o700)
    shutil.copytree(EXAMPLE, tmp_path / "plant")
    for name, port in product(("plant.yaml", "mosquitto.conf"), PORTS):
        file = tmp_path / "plant" / name
        file.write_text(file.read_text().replace(str(port), str(ports[port])))
    begun = list[subprocess.Popen[str]]()

    def run(*words: str) -> "subprocess.Popen[str]":
        begun.append(
            subprocess.Popen(words, cwd=tmp_path / "plant", env=env, text=True, stdout=subprocess.PIPE)
        )
        return begun[-1]

    yield run
    for process in begun:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def answers(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def test_a_reading_crosses_to_the_other_hall_and_to_the_mqtt_broker(
    start: Callable[..., "subprocess.Popen[str]"], ports: dict[int, int]
) -> None:
    def do(*words: str) -> None:
        process = start(*BUSCOUPLER, *words)
        said = process.communicate(timeout=60)[0]
        assert process.returncode == 0, said

    do("cert", "new", "plant-ca.pem", "--name", "plant")
    for name in ("gw-a", "gw-b", "mosquitto"):
        do("cert", "gateway", f"{name}.pem", "--ca", "plant-ca.pem", "--host", "127.0.0.1")
    do("key", "new", "trunk.key")
    do("check", "plant.yaml")
    start(str(MOSQUITTO), "-c", "mosquitto.conf")
    wait(lambda: answers(ports[25955]), LIMIT_S)
    gateways = [start(*BUSCOUPLER, "run", "plant.yaml", "--gateway", name) for name in ("gw-a", "gw-b")]
    wait(lambda: answers(ports[25952]) and answers(ports[25954]), LIMIT_S)
    tls = ["--cafile", "plant-ca.pem", "--cert", "gw-a.pem", "--key", "gw-a.key"]
    heard = start(
        str(SUBSCRIBE),
        "-h",
        "127.0.0.1",
        "-p",
        str(ports[25955]),
        *tls,
        "-t",
        "plant/#",
        "-C",
        "1",
        "-W",
        "60",
    )
    other = start(
        *BUSCOUPLER, "recv", f"tcp://127.0.0.1:{ports[25954]}", "--names", "plant,temp", "--count", "1"
    )

    def spoken() -> bool:
        do("send", f"tcp://127.0.0.1:{ports[25952]}", "plant/temp", "--data", "21.5")
        return heard.poll() is not None and other.poll() is not None

    wait(spoken, LIMIT_S)
    assert "21.5" in heard.communicate()[0]
    assert "plant/temp" in other.communicate()[0]
    assert [gateway.poll() for gateway in gateways] == [None, None]
