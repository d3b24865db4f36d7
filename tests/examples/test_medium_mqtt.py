"""The medium for MQTT brokers, installed: its tests, its topologies, and a gateway that is killed."""

import importlib.util
import re
import shlex
import shutil
import socket
import subprocess
import sys

import pytest

from bus.journal.summary import summarize
from tests.helpers import ROOT
from tests.helpers.installed import Installed
from tests.helpers.peers import wait
from tests.helpers.ports import free_port

EXAMPLE = ROOT / "examples" / "medium-mqtt"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MOSQUITTO, SUB, PUB = (
    shutil.which(name, path=PATH) for name in ("mosquitto", "mosquitto_sub", "mosquitto_pub")
)
pytestmark = pytest.mark.skipif(not importlib.util.find_spec("paho"), reason="pip install paho-mqtt")
needs_mosquitto = pytest.mark.skipif(
    not (MOSQUITTO and SUB and PUB), reason="apt-get install mosquitto mosquitto-clients"
)
TOPOLOGY = """
name: t
gateways: {{a: {{address: 127.0.0.1}}}}
buses: {{plant: {{on: a, listen: "tcp://127.0.0.1:{tcp}"}}}}
bridges: {{north: {{on: a, join: [bus: plant, mqtt: {{url: "127.0.0.1:{broker}", spool: spool}}]}}}}
names: [plant, temp]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(EXAMPLE, tmp_path_factory.mktemp("installed"))


@pytest.mark.timeout(120)
def test_it_passes_its_tests_and_the_conformance_suite(installed: Installed) -> None:
    done = installed.own_tests()
    assert done.returncode == 0, done.stdout


def test_its_topology_and_those_of_its_page_are_valid(installed: Installed) -> None:
    assert installed.buscoupler("check", str(EXAMPLE / "topology.yaml")).endswith(": ok\n")
    shown = installed.buscoupler("show", str(EXAMPLE / "topology.yaml"))
    assert "mqtt 127.0.0.1:1883  subscribe plant/set  publish plant/temp, plant/door" in shown
    found = re.findall(r"```yaml\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.DOTALL)
    assert found
    for number, text in enumerate(found):
        file = installed.place / f"{number}.yaml"
        file.write_text(text)
        assert installed.buscoupler("check", str(file)) == f"{file}: ok\n"


def test_two_sides_with_one_client_id_are_an_error(installed: Installed) -> None:
    file = installed.place / "twice.yaml"
    side = "{bus: plant}, {mqtt: {url: 'mqtt://127.0.0.1', client_id: gw, publish: %s}}"
    bridges = "".join(f"  {name}: {{on: a, join: [{side % name}]}}\n" for name in ("one", "two"))
    file.write_text(
        "name: t\ngateways: {a: {address: 10.0.0.1}}\n"
        f"buses: {{plant: {{on: a, listen: 'tcp://0.0.0.0:5555'}}}}\nbridges:\n{bridges}"
    )
    assert "client id gw is taken by bridge one on a already" in installed.buscoupler(
        "check", str(file), status=1
    )


class Shell:
    """Runs the lines of a page one after the other. Their words `&` at the end leave them running."""

    def __init__(self, installed: Installed, words: dict[str, str]) -> None:
        self._installed, self._words = installed, words
        self._running: list[subprocess.Popen[str]] = []

    def run(self, line: str) -> "subprocess.Popen[str]":
        """Start a line, and wait for its end unless it is to stay."""
        words = shlex.split(line.removesuffix("&"))
        words = [word for one in words for word in self._words.get(one, one).split()]
        started = subprocess.Popen(
            words,
            env=self._installed.environment,
            cwd=self._installed.place,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running.append(started)
        if not line.endswith("&"):
            assert started.wait(30) == 0, line
        return started

    def close(self) -> None:
        for one in reversed(self._running):
            with one:
                one.kill()


def _line(heard: "subprocess.Popen[str]") -> str:
    assert heard.stdout is not None
    return heard.stdout.readline().rstrip("\n")


@needs_mosquitto
@pytest.mark.timeout(120)
def test_the_two_minutes_of_the_page(installed: Installed) -> None:
    tcp, port = free_port(), free_port()
    page = (EXAMPLE / "README.md").read_text().split("## Two minutes")[1].split("\n## ")[0]
    blocks = [text.splitlines() for text in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)]
    printed = [text.splitlines() for text in re.findall(r"prints:\n```text\n(.*?)```", page, re.DOTALL)]
    file = installed.place / "page.yaml"
    text = (EXAMPLE / "topology.yaml").read_text().replace("5555", str(tcp)).replace("1883", str(port))
    file.write_text(text.replace("/tmp/buscoupler-mqtt-spool", str(installed.place / "page")))
    shell = Shell(installed, {
        "buscoupler": f"{sys.executable} -m buscoupler",
        "examples/medium-mqtt/topology.yaml": str(file),
        "tcp://127.0.0.1:5555": f"tcp://127.0.0.1:{tcp}",
        "1883": str(port),
        "mosquitto": str(MOSQUITTO),
        "mosquitto_sub": f"{SUB} -p {port}",
        "mosquitto_pub": f"{PUB} -p {port}",
    })  # fmt: skip
    try:
        up, down = blocks
        broker, gateway, subscriber, send = up[1:]  # the first line installs what is installed
        shell.run(broker)
        wait(lambda: _listens(port))
        shell.run(gateway)
        heard = shell.run(subscriber)
        shell.run(send)
        assert {_line(heard) for _ in printed[0]} == set(printed[0])
        recv, publish = down
        heard = shell.run(recv)
        said = [_line(heard)]  # the last value: from now on it listens
        shell.run(publish)
        said.append(_line(heard))
        assert [text.split(" ", 1)[1] for text in said] == [text.split(" ", 1)[1] for text in printed[1]]
    finally:
        shell.close()


@needs_mosquitto
@pytest.mark.timeout(120)
def test_a_killed_gateway_has_lost_nothing_that_was_in_its_spool(installed: Installed) -> None:
    tcp, port = free_port(), free_port()
    file = installed.place / "killed.yaml"
    file.write_text(TOPOLOGY.format(tcp=tcp, broker=port))
    spool = installed.place / "spool"
    with installed.process("run", str(file)) as gateway:
        wait(lambda: (spool / "journal.json").exists())
        for number in range(3):  # while there is no broker
            installed.buscoupler("send", f"tcp://127.0.0.1:{tcp}", "plant/temp", "--data", f"{number}")
        wait(lambda: summarize(str(spool)).next == 4)
        gateway.kill()
    assert MOSQUITTO is not None
    assert SUB is not None
    assert PUB is not None
    with subprocess.Popen([MOSQUITTO, "-p", str(port)], stderr=subprocess.DEVNULL) as broker:
        try:
            wait(lambda: _listens(port))
            command = [SUB, "-p", str(port), "-t", "plant/#", "-t", "up", "-v"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as heard:
                assert heard.stdout is not None
                publish = PUB, "-p", str(port), "-t", "up", "-m", "1", "-r"
                subprocess.run(publish, check=True)
                assert heard.stdout.readline() == "up 1\n"  # so the subscriber is one
                with installed.process("run", str(file)):
                    lines = [heard.stdout.readline() for _ in range(3)]
                heard.terminate()
            assert lines == [f"plant/temp {number}\n" for number in range(3)]
        finally:
            broker.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
