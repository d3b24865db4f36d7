"""A machine that has two ports, or no route: programs go on, or say what to do."""

import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from tests.helpers import ROOT
from tests.system.namespaces import why_not

WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

FEW_PORTS = "ip link set lo up; echo 40000 40001 > /proc/sys/net/ipv4/ip_local_port_range; exec"
PROGRAM = """
import socket, sys, time
from buscoupler import Bus, LinkError

def listening(url):
    for _ in range(500):
        try:
            return Bus(listen=url)
        except LinkError:  # at the moment the port is that of a dial
            time.sleep(0.01)
    sys.exit("the port was never free")

with socket.create_connection((sys.argv[1], 40000)) as probe:
    assert probe.getsockname() == probe.getpeername(), "this kernel chose another port"
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
url = f"tcp://{sys.argv[2]}:40000"
with Bus(dial=url, retry_min_s=0.01, retry_max_s=0.02) as bus:
    bus.send(("a", "b"), b"to itself")
    assert not bus.peers, bus.peers
    with listening(url) as other:
        assert bus.wait_peers(1, 30) and other.wait_peers(1, 30)
        other.send(("a", "b"), b"of the other")
        print(bus.recv(30).data)
"""


JOIN = """
import sys
from bridges.media.can.group import GroupBus
try:
    GroupBus(sys.argv[1])
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize(("group", "word"), [("239.74.163.2", "ip"), ("ff15::74", "ip -6")])
def test_of_a_group_without_a_route(group: str, word: str) -> None:
    words = ["unshare", "--net", sys.executable, "-c", JOIN, group]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"there is no route to {group}: run {word} route add {group} dev ")
    assert not done.stderr


@pytest.mark.parametrize("group", ["239.74.163.2", "ff15::74"])
def test_a_look_before_a_start_says_that_a_group_has_no_route(group: str, tmp_path: Path) -> None:
    """`check --here` found nothing on a machine without a route to the group of a CAN bus."""
    side = f"can: {{channel: '{group}', interface: udp_multicast, bitrate: 500000}}"
    file = tmp_path / "t.yaml"
    file.write_text(
        "name: t\ngateways: {gw: {node: 1}}\nbuses: {p: {on: gw}}\n"
        f"bridges: {{b: {{on: gw, join: [bus: p, {{{side}}}]}}}}\n"
    )
    words = ["unshare", "--net", sys.executable, "-m", "buscoupler", "check", "--here", str(file)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert f"there is no route to {group}: run ip " in done.stdout + done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("hosts", [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_of_a_bus(hosts: tuple[str, str]) -> None:
    words = ["unshare", "--net", "sh", "-c", f'{FEW_PORTS} "$@"', "sh", sys.executable, "-c", PROGRAM, *hosts]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("b'of the other'\n", "")


def clients_of_tmq(directory: Path) -> dict[str, list[str]]:
    """Return the words of each client in another language, without what it says."""
    source, program = ROOT / "examples/clients", directory / "tmq"
    subprocess.run(
        ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", program, source / "tmq.c"], check=True
    )
    return {"C": [str(program)]} | ({"JavaScript": ["node", str(source / "tmq.js")]} if which("node") else {})


@pytest.mark.skipif(which("cc") is None, reason="there is no C compiler `cc` (Debian: gcc and libc6-dev)")
def test_of_a_client_in_another_language(tmp_path: Path) -> None:
    """Each waited without end for an answer of itself. The port is free at once for who listens there."""
    for name, words in clients_of_tmq(tmp_path).items():
        twice = 'for n in 1 2; do timeout 20 "$@"; echo $?; done'
        line = ["unshare", "--net", "sh", "-c", f"{FEW_PORTS.removesuffix('exec')}{twice}", "sh"]
        line += [*words, "pub", "127.0.0.1", "40000", "1", "x"]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.stdout == "1\n1\n", (name, done)
