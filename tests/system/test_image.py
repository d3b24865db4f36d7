"""The container image: not as root, and with a root that cannot be written (`make image-test`).

It runs in a mount namespace where the cgroups are those of version 2 alone, which crun asks for.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

IMAGE = os.environ.get("BUSCOUPLER_IMAGE", "")
pytestmark = [
    pytest.mark.skipif(not IMAGE, reason="takes minutes: run `make image-test`"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a mount namespace"),
    pytest.mark.skipif(shutil.which("podman") is None, reason="needs podman"),
    pytest.mark.timeout(300),
]
TOPOLOGY = """\
name: box
gateways: {gw: {address: 127.0.0.1, node: 1}}
buses: {one: {on: gw, listen: ["tcp://127.0.0.1:5555"]}}
"""
SCRIPT = """\
umount -R /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup
RUN="podman run --rm --network none --cgroups disabled --read-only --read-only-tmpfs=false --cap-drop all
--security-opt no-new-privileges --ulimit nofile=4096:4096 --ulimit nproc=512:512 --tmpfs /tmp --name $NAME"
$RUN -v $FILE:/etc/buscoupler/topology.yaml:ro $IMAGE > $OUT/log 2>&1 &
for _ in $(seq 300); do grep -q 5555 $OUT/log && break; sleep 0.1; done
podman exec $NAME id -u > $OUT/user
podman exec $NAME buscoupler top --json > $OUT/top
podman exec $NAME touch /x 2> $OUT/touch
podman stop -t 10 $NAME > /dev/null
wait $!
echo $? > $OUT/status
"""


def test_it_runs_as_a_user_with_a_root_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "box.yaml"
    file.write_text(TOPOLOGY)
    file.chmod(0o644)
    words = {"FILE": str(file), "OUT": str(tmp_path), "NAME": f"bc-{os.getpid()}", "IMAGE": IMAGE}
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", SCRIPT]
    done = subprocess.run(command, env=os.environ | words, capture_output=True, text=True, timeout=240)
    log = (tmp_path / "log").read_text()
    assert "box: gw runs bus one" in log, log + done.stderr
    assert (tmp_path / "user").read_text() == "10001\n"
    assert json.loads((tmp_path / "top").read_text())["topology"] == "box"
    assert "Read-only file system" in (tmp_path / "touch").read_text()
    assert (tmp_path / "status").read_text() == "0\n"
    assert "balanced" in log
