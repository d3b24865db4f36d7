"""A virtual machine with Debian's kernel, which has real CAN and I2C drivers that this kernel lacks.

`missing()` returns why it cannot run here. `run(command)` boots it, runs one command in it as root, and
returns its output. The guest has the files of `tests.kernel.freight` in memory, can write its results to
`share`, and has:

- `vcan0`, up, classic and FD; python-can's `socketcan` opens it;
- `can0` and `can1`, down: two SJA1000 controllers (kvaser_pci) on one simulated bus;
- drivers of simulated IEEE 802.15.4 radios, not loaded (`tests/kernel/guest/radios.py`);
- `/dev/i2c-N` of i2c-stub (its name in `/sys/class/i2c-adapter`), with targets at `STUB_TARGETS`.

By hand: `.venv/bin/python -m tests.kernel.machine COMMAND ...` (docs/testing.md).
"""

import contextlib
import importlib.util
import lzma
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.kernel import freight
from tests.kernel.freight import REPOSITORY

IN_GUEST = "BUSCOUPLER_GUEST"
"""The variable that is set in the environment of every command in the machine, and nowhere else."""
WIRE_LOG = "BUSCOUPLER_WIRE_LOG"
"""The variable with the path of a log of candump that a tap has recorded, for the tests in the machine."""
STUB_TARGETS = (0x20, 0x21, 0x42)
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "modprobe": "kmod",
    "rmmod": "kmod",
    "ip": "iproute2",
    "tc": "iproute2",
    "candump": "can-utils",
    "cangen": "can-utils",
    "canplayer": "can-utils",
    "cansend": "can-utils",
    "iwpan": "wpan-tools",
    "wpan-hwsim": "wpan-tools",
}
"""The Debian package of each program that is needed; `make test` installs them. The guest has all but the
first."""
MODULES = {
    "pycyphal2": "pycyphal2==2.0.0.dev9",
    "can": "python-can",
    "smbus2": "smbus2",
}
"""The Python package of each module that is needed; the extra `dev` has them."""
_DRIVER = "kernel/drivers/net/can/vcan.ko"
_SHARED = ("virtio_pci", "9pnet_virtio", "9p")
_BUSES = ("vcan", "can-raw", "kvaser_pci", "i2c-dev", "i2c-i801")
_LATER = ("i2c-stub", "sch_tbf", "sch_netem", "mac802154_hwsim", "ieee802154_socket", "ieee802154_6lowpan")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_MACHINE = (
    *("-machine", "q35", "-m", "1G", "-smp", "1", "-nodefaults", "-no-user-config", "-display", "none"),
    *("-serial", "stdio", "-no-reboot"),
    # A processor of few instructions: emulation does those of a newer one in nearly twice the time.
    *("-accel", "tcg", "-cpu", "qemu64"),
    *("-object", "can-bus,id=bus0", "-device", "kvaser_pci,canbus=bus0", "-device", "kvaser_pci,canbus=bus0"),
)
"""Emulated without KVM, which hangs inside a virtual machine on some hosts."""
_QUIET = "console=ttyS0 quiet loglevel=1 panic=-1 nokaslr mitigations=off cryptomgr.notests tsc=reliable"
_INIT = """#!{busybox} sh
{busybox} mkdir -p /dev /proc /sys {share}
{busybox} mount -t proc proc /proc
{busybox} mount -t sysfs sysfs /sys
{busybox} mount -t devtmpfs devtmpfs /dev
export PATH={path}
{busybox} --install -s 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
ip link set lo up
modprobe -a {shared}
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 share {share}
sh {share}/guest.sh
sync
reboot -f
"""
_SCRIPT = """
set -e
modprobe -a {buses}
modprobe i2c-stub chip_addr={targets}
ip link add vcan0 type vcan
ip link set vcan0 mtu 72 up
cd {repository}
touch {share}/booted
set +e
{environment} {command} >{share}/output 2>&1 </dev/null
echo $? >{share}/status
"""
_XZ = b"\xfd7zXZ\0"


@dataclass(frozen=True)
class Result:
    """The result of a command in the machine; `status` is None if it never ended."""

    status: int | None
    output: str
    console: str


def kernel() -> Path | None:
    """Return the newest installed kernel with CAN drivers; Debian's `cloud` kernels lack them."""
    found = [
        image
        for image in Path("/boot").glob("vmlinuz-*")
        if (Path("/lib/modules") / image.name.removeprefix("vmlinuz-") / _DRIVER).exists()
    ]
    return max(
        found,
        key=lambda image: [int(n) if n.isdigit() else 0 for n in image.name.split("-")[1].split(".")],
        default=None,
    )


def _path() -> str:
    """Return the path to search for programs: it adds `sbin`, which not every user's path has."""
    return f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def missing() -> str:
    """Return why the machine cannot run here, and what to do; "" if it can."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "the virtual machine is made for Linux on x86-64"
    packages = [
        package for program, package in PROGRAMS.items() if shutil.which(program, path=_path()) is None
    ]
    if kernel() is None:
        packages.append("linux-image-amd64")
    if packages:
        return "no virtual machine: apt-get install " + " ".join(packages)
    modules = [package for name, package in MODULES.items() if importlib.util.find_spec(name) is None]
    if modules:
        return "no virtual machine: pip install " + " ".join(modules)
    return ""


def run(command: Sequence[str], share: Path, seconds: float = 300.0, more: str = "") -> Result:
    """Boot, run `command` in the guest in the repository's root, and shut down, within `seconds` in all.

    `share` is an absolute path to a directory that the guest can write under the same name. The guest
    has one processor: the emulated controller sends in no time at any bitrate, so with two, frames on `can0`
    overrun the four that the controller of `can1` holds. With one, the interrupt comes first. `more` are
    options of QEMU.
    It raises nothing: a machine that does not boot is a result without a status.
    """
    (share / "guest.sh").write_text(_script(command, share))
    with tempfile.TemporaryDirectory(prefix="machine-") as directory:
        console = _boot([*_qemu(Path(directory), share), *more.split()], seconds)
    status = _read(share / "status").strip()
    return Result(int(status) if status else None, _read(share / "output"), console)


def _script(command: Sequence[str], share: Path) -> str:
    return _SCRIPT.format(
        share=shlex.quote(str(share)),
        buses=" ".join(_BUSES),
        targets=",".join(map(hex, STUB_TARGETS)),
        repository=shlex.quote(str(REPOSITORY)),
        environment=f"env {IN_GUEST}=1 PYTHONDONTWRITEBYTECODE=1 HOME=/root",
        command=shlex.join(command),
    )


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _boot(qemu: Sequence[str], seconds: float) -> str:
    """Run the machine and return its console output. It kills only processes that it started."""
    with tempfile.TemporaryFile() as console:
        process = subprocess.Popen(
            qemu,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            console.write(f"\nended after {seconds:.0f} s\n".encode())
        finally:
            _end(process)
        console.seek(0)
        return console.read().decode(errors="replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the machine's processes: they have their own session, with nobody else in it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _qemu(directory: Path, share: Path) -> list[str]:
    """Make what the machine boots from in a directory. Returns the command that boots it."""
    image = kernel()
    assert image is not None
    first, unpacked = directory / "files", directory / "kernel"
    unpacked.write_bytes(_unpacked(image))
    programs = {name: shutil.which(name, path=_path()) or name for name in [*PROGRAMS][1:]}
    init = _INIT.format(
        busybox=programs["busybox"], share=shlex.quote(str(share)), path=_PATH, shared=" ".join(_SHARED)
    )
    with first.open("wb") as file:
        release = image.name.removeprefix("vmlinuz-")
        freight.pack(file, release, (*_SHARED, *_BUSES, *_LATER), programs.values(), init)
    return [
        *("qemu-system-x86_64", *_MACHINE, "-kernel", str(unpacked), "-initrd", str(first)),
        *("-append", _QUIET, "-virtfs", f"local,path={share},mount_tag=share,security_model=none"),
    ]


def _unpacked(image: Path) -> bytes:
    """Return the kernel in an image that Debian packs with xz, which would take long in emulation. Returns
    one that is packed otherwise as it is."""
    data = image.read_bytes()
    start = data.find(_XZ)
    return lzma.LZMADecompressor().decompress(data[start:]) if start >= 0 else data


def main(arguments: Sequence[str]) -> int:
    """Run one command in the machine, print its output, and return its status."""
    if reason := missing():
        print(reason, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="machine-") as share:
        result = run(arguments, Path(share))
    print(result.output, end="")
    if result.status is None:
        print(result.console, file=sys.stderr)
        return 1
    return result.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
