"""The Debian package in a clean Debian, without a network, under a real systemd: `make deb-test`.

The root is made by debootstrap. Namespaces stand in for a machine: systemd is process 1 in them. A script in
there does what the administrator would, and writes what it saw; the tests read that.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.helpers import ROOT

PACKAGE = os.environ.get("BUSCOUPLER_DEB", "")
PROGRAMS = ("debootstrap", "unshare", "chroot")
pytestmark = [
    pytest.mark.skipif(not PACKAGE, reason="takes minutes: run `make deb-test`"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for namespaces and a root directory"),
    *(pytest.mark.skipif(shutil.which(name) is None, reason=f"needs {name}") for name in PROGRAMS),
    pytest.mark.timeout(900),
]
BASE = ROOT / "build/deb-base"
INSIDE = "python3.11,libstdc++6,systemd,systemd-sysv,udev,iproute2"
TOPOLOGY = """\
name: plant
gateways: {gw: {address: 127.0.0.1, node: 1, status: "http://127.0.0.1:99"}}
buses:
  shop: {on: gw, listen: ["tcp://127.0.0.1:5555", "inproc://shop"]}
  yard: {on: gw, listen: ["tcp://127.0.0.1:5556", "ipc:///run/buscoupler/yard.sock"]}
bridges:
  joint: {on: gw, join: [{bus: shop}, {bus: yard}]}
  field:
    on: gw
    join:
      - bus: shop
      - uart: {port: /dev/ttyUSB0, baud: 115200}
      - can: {interface: udp_multicast, channel: 239.74.163.9, fd: true}
"""
RECORDER = "devices: {recorder: {on: gw, tap: shop, directory: /srv/capture, file_s: 1}}\n"
# The package has no Arrow: these tests lend that of their own environment, if it fits the machine's Python.
ARROW = find_spec("pyarrow") if sys.version_info[:2] == (3, 11) else None
BOOT = """\
set -e
mount --bind $R $R
mount -t proc proc $R/proc
mount -t sysfs sysfs $R/sys
mount -t tmpfs tmpfs $R/run
mount -t tmpfs -o nosuid,mode=755 tmpfs $R/dev
for n in null zero full random urandom tty; do : > $R/dev/$n; mount --bind /dev/$n $R/dev/$n; done
: > $R/dev/console; : > $R/var/console; mount --bind $R/var/console $R/dev/console
mknod $R/dev/ttyS0 c 4 64; chmod 666 $R/dev/ttyS0
ln -s /proc/self/fd $R/dev/fd; mkdir -p $R/dev/pts $R/dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts $R/dev/pts; ln -s pts/ptmx $R/dev/ptmx
mount -t cgroup2 cgroup2 $R/sys/fs/cgroup
mkdir -p $R/sys/fs/cgroup/$GROUP; echo $$ > $R/sys/fs/cgroup/$GROUP/cgroup.procs
umount $R/sys/fs/cgroup
exec unshare --cgroup sh -c "mount -t cgroup2 cgroup2 $R/sys/fs/cgroup; exec env -i container=test \\
PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot $R /lib/systemd/systemd --show-status=0"
"""
SCRIPT = """\
FILE=/etc/buscoupler/plant.yaml
say() { echo "== $1"; }
pid() { systemctl show -P MainPID buscoupler; }
until_new() { for _ in $(seq 300); do p=$(pid); [ "$p" != 0 ] && [ "$p" != "$1" ] && \\
    systemctl -q is-active buscoupler && return; sleep 0.1; done; }
say package; dpkg -i /buscoupler.deb; buscoupler --version
export PYTHONPATH=/opt/arrow; systemctl set-environment PYTHONPATH=/opt/arrow
say check; buscoupler check $FILE
say install; buscoupler install $FILE | tee /next
sed -n '/^  /p' /next | grep -v udevadm | grep -v 'systemctl status' > /next.sh; sh -e /next.sh
say started; until_new none; systemctl is-active buscoupler
grep -E '^(Uid|Seccomp|NoNewPrivs)' /proc/$(pid)/status
say crosses; buscoupler recv tcp://127.0.0.1:5556 --names a --count 1 > /got & receiver=$!
until ss -tn state established '( dport = :5556 )' | grep -q 5556; do sleep 0.1; done
buscoupler send tcp://127.0.0.1:5555 a --data 21.5; wait $receiver; cat /got
say page; python3.11 -c 'import json, urllib.request as u
status = json.load(u.urlopen("http://127.0.0.1:99/status.json"))
print(status["gateway"], *(tap["name"] + " " + tap["state"] for tap in status["taps"]))'
say captured; for _ in $(seq 300); do
    find /srv/capture -name '*.parquet' | grep -q . && break; sleep 0.1; done
find /srv/capture -name '*.parquet' -user buscoupler
say writer; for p in $(cat /proc/$(pid)/task/*/children); do
    grep -E '^(Uid|Seccomp|NoNewPrivs)' /proc/$p/status; done
say device; (echo 0 > /sys/fs/cgroup/system.slice/buscoupler.service/cgroup.procs; : < /dev/ttyS0) 2>&1
say reload; sed -i 's/yard.sock/other.sock/' $FILE; systemctl reload buscoupler; echo status $?
journalctl -u buscoupler --no-pager -o cat | grep -i sock
say top; buscoupler top --json
say refused; cp $FILE /saved; echo 'nonsense: 1' >> $FILE
systemctl reload buscoupler; echo status $?; systemctl is-active buscoupler; cp /saved $FILE
say frozen; old=$(pid); kill -STOP $old; until_new $old; systemctl is-active buscoupler
systemctl show -P NRestarts buscoupler; journalctl -u buscoupler --no-pager -o cat | grep -i watchdog
say killed; old=$(pid); kill -9 $old; until_new $old; systemctl is-active buscoupler
say upgrade; old=$(pid); dpkg -i /buscoupler.deb > /dev/null; until_new $old; systemctl is-active buscoupler
say security; systemd-analyze security --no-pager buscoupler | tail -1
say journal; journalctl -u buscoupler --no-pager -o cat | tail -60
say remove; dpkg -r buscoupler; systemctl is-active buscoupler
find / -xdev -iname '*buscoupler*' -not -path '/buscoupler.deb' -not -path '/var/lib/dpkg/*'
say end
systemctl poweroff --force
"""
UNIT = "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'sh /script > /log 2>&1'\nStandardInput=null\n"


def mirror() -> str:
    """Return the mirror that apt has here."""
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    return subprocess.check_output(words, text=True).splitlines()[0]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Boot the machine, and return what its script said, by section."""
    if not (BASE / "usr/bin/python3.11").exists():
        shutil.rmtree(BASE, ignore_errors=True)
        words = ["debootstrap", "--variant=minbase", f"--include={INSIDE}", "bookworm", str(BASE), mirror()]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    root = tmp_path_factory.mktemp("deb") / "root"
    subprocess.run(["cp", "-a", "--reflink=auto", str(BASE), str(root)], check=True)
    prepare(root)
    words = ["unshare", "--mount", "--propagation", "private", "--pid", "--kill-child", "--fork"]
    environment = {"R": str(root), "GROUP": f"buscoupler-{os.getpid()}", "PATH": os.environ["PATH"]}
    words += ["--uts", "--ipc", "--net", "sh", "-c", BOOT]
    subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, timeout=600, check=False)
    text = (root / "log").read_text()
    print(text)
    shutil.rmtree(root)
    parts = re.split(r"^== (\w+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def prepare(root: Path) -> None:
    shutil.copy(PACKAGE, root / "buscoupler.deb")
    (root / "etc/buscoupler").mkdir()
    (root / "etc/buscoupler/plant.yaml").write_text(TOPOLOGY + (RECORDER if ARROW else ""))
    if ARROW is not None and ARROW.origin is not None:
        shutil.copytree(Path(ARROW.origin).parent, root / "opt/arrow/pyarrow")
    (root / "script").write_text(SCRIPT)
    units = root / "etc/systemd/system"
    (units / "script.service").write_text(UNIT)
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "script.service").symlink_to("../script.service")
    (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")


def test_it_installs_without_a_network(said: dict[str, str]) -> None:
    assert "buscoupler 0." in said["package"]
    assert said["check"].splitlines()[-1] == "/etc/buscoupler/plant.yaml: ok"


def test_its_service_starts_in_its_sandbox_and_frames_cross(said: dict[str, str]) -> None:
    lines = said["started"].splitlines()
    assert "active" in lines
    assert "NoNewPrivs:\t1" in lines
    assert "Seccomp:\t2" in lines
    assert not any(line.startswith("Uid:\t0") for line in lines)
    assert "21.5" in said["crosses"]


def test_its_status_page_answers_at_a_low_port(said: dict[str, str]) -> None:
    assert said["page"].split()[0] == "gw"


@pytest.mark.skipif(ARROW is None, reason="needs pyarrow and Python 3.11, as in bookworm")
def test_a_tap_records_in_the_sandbox(said: dict[str, str]) -> None:
    assert "recorder up" in said["page"]
    assert said["captured"].startswith("/srv/capture/"), said["journal"]
    assert {"NoNewPrivs:\t1", "Seccomp:\t2"} <= set(said["writer"].splitlines())


def test_it_opens_only_the_devices_of_its_topology(said: dict[str, str]) -> None:
    assert "Operation not permitted" in said["device"]


def test_it_reloads_and_a_wrong_file_fails_the_reload_and_changes_nothing(said: dict[str, str]) -> None:
    assert "status 0" in said["reload"]
    lines = said["refused"].splitlines()
    assert any(re.fullmatch("status [1-9]", line) for line in lines)
    assert lines[-1] == "active"
    assert json.loads(said["top"])["topology"] == "plant"


def test_a_loop_that_stands_still_is_restarted(said: dict[str, str]) -> None:
    assert said["frozen"].splitlines()[:2] == ["active", "1"]
    assert "watchdog timeout" in said["frozen"].lower()


def test_it_is_back_after_a_kill_and_after_an_upgrade(said: dict[str, str]) -> None:
    assert said["killed"].strip() == "active"
    assert said["upgrade"].strip() == "active"


def test_its_removal_takes_the_service_along_and_leaves_the_topology(said: dict[str, str]) -> None:
    lines = said["remove"].splitlines()
    assert "inactive" in lines
    left = {line for line in lines if line.startswith("/")}
    assert left == {"/etc/buscoupler", "/var/lib/buscoupler"}
    assert "end" in said
