"""Gateways in network namespaces, each with a real sshd and a running gateway, for roll-outs over SSH.

`python -m tests.system.plant_of_namespaces 100` rolls a change out to so many, goes back, and rolls one out
that a gateway in the middle is not well with; it says how long each took.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.helpers import ROOT
from tests.system import forks

PROGRAM = f"{sys.executable} -m buscoupler"
FORKED = f'{sys.executable} -I -S {forks.__file__} "$XDG_RUNTIME_DIR"/forks'
"""The same by a process of the gateway that has imported it, which takes a tenth of the processor."""
UNPACKED = ROOT / "build" / "sshd" / "usr" / "sbin" / "sshd"
"""Debian's sshd as `make test` unpacks it: installed, it would start a server."""
SSHD = UNPACKED if UNPACKED.exists() else Path("/usr/sbin/sshd")
_USERS = "root:x:0:0:root:/root:/bin/sh\nsshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"
"""Those that sshd knows: it needs a user of its own, and what a shell reads at its start is not ours."""


def sh(text: str, check: bool = True) -> str:
    """Run lines of shell and return what they print."""
    return subprocess.run(["sh", "-ec", text], check=check, capture_output=True, text=True).stdout


def missing() -> str:
    """Return what this machine lacks for such gateways; "" if nothing."""
    if os.geteuid():
        return "needs root"
    absent = [name for name in ("ip", "ssh", "ssh-keygen") if not shutil.which(name)]
    absent += [] if SSHD.exists() else ["sshd"]
    if absent:
        return f"{', '.join(absent)} is missing: make test"
    return (
        ""
        if subprocess.run(["ip", "netns", "list"], capture_output=True).returncode == 0
        else "no namespaces"
    )


class Plant:
    """`count` gateways g1, g2, ... at 10.77.H.N in namespaces, on one bridge in the namespace of `hub`."""

    def __init__(self, directory: Path, count: int, forked: bool = False) -> None:
        self.program = FORKED if forked else PROGRAM
        self.directory, self.names = directory, [f"g{number}" for number in range(1, count + 1)]
        self.hub = f"bc{os.getpid()}"
        self._processes: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
        self._env = {**os.environ, "PYTHONPATH": str(ROOT)}

    def address(self, name: str) -> str:
        number = int(name[1:])
        return f"10.77.{number // 250}.{1 + number % 250}"

    def space(self, name: str) -> str:
        return f"{self.hub}{name}"

    def text(self, extra: str = "", only: str = "") -> str:
        """Return a topology of the plant. `extra` is one more bus, on all gateways or `only` one."""
        lines = ["name: plant", "gateways:"]
        lines += [f"  {name}: {{address: {self.address(name)}}}" for name in self.names]
        lines += ["buses:"]
        for name in self.names:
            lines += [f'  bus-{name}: {{on: {name}, listen: ["tcp://{self.address(name)}:5555"]}}']
            if extra and only in ("", name):
                lines += [f"  new-{name}: {{on: {name}, {extra.replace('HOST', self.address(name))}}}"]
        return "\n".join(lines) + "\n"

    def make(self) -> None:
        """Make namespaces, keys, sshd and gateways. `close` removes them."""
        Path("/run/sshd").mkdir(exist_ok=True)
        (self.directory / "passwd").write_text(_USERS)
        sh(f"""cd {self.directory}
            ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f user; cp user.pub known
            ip netns add {self.hub}; ip -n {self.hub} link set lo up
            ip -n {self.hub} link add lan0 type bridge; ip -n {self.hub} link set lan0 up
            ip -n {self.hub} addr add 10.77.200.1/16 dev lan0""")
        for name in self.names:
            space = self.space(name)
            sh(f"""ip netns add {space}; ip -n {space} link set lo up
                ip -n {space} link add eth0 type veth peer name {name} netns {self.hub}
                ip -n {space} addr add {self.address(name)}/16 dev eth0; ip -n {space} link set eth0 up
                ip -n {self.hub} link set {name} master lan0 up""")
            (self.directory / name).mkdir()
            self.own(name).mkdir(mode=0o700)
            self.file(name).write_text(self.text())
            self.serve(name)
            self.run(name)
            if self.program == FORKED:
                self.start(
                    name, "forks", [sys.executable, "-m", forks.__name__, str(self.own(name) / "forks")]
                )

    def own(self, name: str) -> Path:
        """Return the runtime directory of a gateway, as if it had a machine of its own."""
        return self.directory / name / "run"

    def file(self, name: str) -> Path:
        return self.directory / name / "plant.yaml"

    def _sshd(self, name: str) -> list[str]:
        told = {
            "HostKey": f"{self.directory}/host", "AuthorizedKeysFile": f"{self.directory}/known",
            "StrictModes": "no", "UsePAM": "no", "PermitRootLogin": "yes", "PidFile": "none",
            "ListenAddress": self.address(name), "MaxStartups": "100", "KexAlgorithms": "curve25519-sha256",
            "SetEnv": f"XDG_RUNTIME_DIR={self.own(name)} PYTHONPATH={ROOT}",
        }  # fmt: skip
        words = [str(SSHD), "-D", "-f", "/dev/null", *(f"-o{key}={value}" for key, value in told.items())]
        return ["sh", "-c", f"mount --bind {self.directory}/passwd /etc/passwd; exec {shlex.join(words)}"]

    def start(self, name: str, what: str, words: list[str]) -> None:
        """Start a program in the namespace of a gateway; `what` names it for `kill`."""
        log = open(self.directory / name / f"{what}.log", "ab")  # noqa: SIM115
        whole = ["ip", "netns", "exec", self.space(name), *words]
        self._processes[name, what] = subprocess.Popen(
            whole, stdout=log, stderr=log, env=self._env | {"XDG_RUNTIME_DIR": str(self.own(name))}
        )
        log.close()

    def serve(self, name: str) -> None:
        self.start(name, "sshd", self._sshd(name))

    def run(self, name: str) -> None:
        self.start(
            name, "run", [sys.executable, "-m", "buscoupler", "run", str(self.file(name)), "--gateway", name]
        )

    def kill(self, name: str, what: str) -> None:
        process = self._processes.pop((name, what))
        process.kill()
        process.wait()

    def ready(self) -> bool:
        patterns = ["*/plant/{}/reload.sock", *(["forks"] if self.program == FORKED else [])]
        return all(any(self.own(name).glob(one.format(name))) for name in self.names for one in patterns)

    def command(self, *words: str, program: str = "") -> list[str]:
        """Return a command of `deploy` or `rollback` that reaches these gateways."""
        ssh = (
            f"ip netns exec {self.hub} ssh -F /dev/null -i {self.directory}/user -o StrictHostKeyChecking=no "
            f"-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        )
        where = ["--to", f"{self.directory}/{{gateway}}/plant.yaml", "--ssh", ssh]
        where += ["--program", program or self.program]
        return [sys.executable, "-m", "buscoupler", *words, *where]

    def do(self, *words: str, program: str = "") -> subprocess.CompletedProcess[str]:
        """Run such a command. Gateways run its steps by `program`; by default by that of the plant."""
        command = self.command(*words, program=program)
        return subprocess.run(command, capture_output=True, text=True, env=self._env, cwd=ROOT)

    def cut(self, name: str) -> None:
        sh(f"ip -n {self.space(name)} link set eth0 down")

    def files(self) -> set[str]:
        return {self.file(name).read_text() for name in self.names}

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        for name in ["", *self.names]:
            sh(f"ip netns del {self.hub}{name}", check=False)


@contextmanager
def plant(count: int, forked: bool = False) -> Iterator[Plant]:
    """Give a plant whose gateways run, and fork for each step of a roll-out if that is asked for."""
    with tempfile.TemporaryDirectory(prefix="plant") as directory:
        made = Plant(Path(directory), count, forked)
        try:
            made.make()
            wait(made.ready, 10 + 4 * count)
            yield made
        finally:
            made.close()


def wait(condition: Callable[[], bool], limit_s: float = 30) -> None:
    """Wait until a condition holds. Raises `TimeoutError`."""
    end_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end_s:
            raise TimeoutError
        time.sleep(0.05)


def main(count: int) -> None:
    if text := missing():
        sys.exit(text)
    begun_s = time.monotonic()
    with plant(count) as made:
        print(f"{count} gateways run after {time.monotonic() - begun_s:.0f} s", flush=True)
        new, ill = made.directory / "new.yaml", made.directory / "ill.yaml"
        new.write_text(made.text('listen: ["tcp://HOST:5556"]'))
        ill.write_text(made.text('dial: ["tcp://HOST:1"]', only=made.names[count // 2]))
        for words in (["deploy", str(new), "--yes"], ["rollback", str(new)], ["deploy", str(ill), "--yes"]):
            begun_s = time.monotonic()
            done = made.do(*words)
            spent_s = time.monotonic() - begun_s
            print(f"{words[0]}: status {done.returncode}, {spent_s:.1f} s; {done.stdout.splitlines()[-1:]}")
            print(done.stderr[-2000:], len(made.files()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
