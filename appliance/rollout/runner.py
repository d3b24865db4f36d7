"""Asks gateways for steps, by the system's `ssh`: many at once, each within a bound of time and bytes."""

import posixpath
import queue
import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias

from appliance.process import interrupts
from appliance.rollout.plan import Rollout
from appliance.rollout.steps import Answer, Asked, pack, unpack_answer
from bus.errors import words_of
from bus.urls import plain_host

STEP_S = 60.0
_THREADS = 32
_RESOLVERS, _RESOLVE_S = 4, 10.0
_TICK_S = 0.5
_Answered = tuple[str, str, Answer | str]
_Answers: TypeAlias = "queue.SimpleQueue[_Answered | None]"
_OPTIONS = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5",
            "-o", "ServerAliveCountMax=3")  # fmt: skip


class Ssh:
    """The way to gateways. `hosts` are where each is, `file` where its topology is (`{gateway}` is replaced).

    `ssh` is the program and its options, `program` the command `buscoupler` on the gateway.
    """

    def __init__(
        self, hosts: dict[str, str], file: str, ssh: str = "ssh", program: str = "buscoupler"
    ) -> None:
        self._hosts, self._file = hosts, file
        self._ssh, self._program = shlex.split(ssh), program

    def file_of(self, gateway: str) -> str:
        """Return where the topology of a gateway is, on its host."""
        return self._file.replace("{gateway}", gateway)

    def sharing(self) -> list[str]:
        """Return the first gateways that have one file on one host; [] if each has its own.

        Names of a host in the configuration of ssh are resolved, which asks no gateway.
        """
        return self._sharing(list(self._hosts.values())) or self._sharing(self._resolved())

    def _sharing(self, hosts: Sequence[str]) -> list[str]:
        found = dict[tuple[str, str], list[str]]()
        for name, host in zip(self._hosts, hosts, strict=True):
            found.setdefault(_place(host, self.file_of(name)), []).append(name)
        return next((names for names in found.values() if len(names) > 1), [])

    def _resolved(self) -> list[str]:
        """Return where each host is by the configuration of ssh; as it is written if that cannot be told."""
        if len(self._hosts) < 2 or posixpath.basename(self._ssh[0]) != "ssh":
            return list(self._hosts.values())
        with ThreadPoolExecutor(_RESOLVERS) as pool:
            return list(pool.map(self._resolve, self._hosts.values()))

    def _resolve(self, host: str) -> str:
        words = [*self._ssh, "-G", "--", host]
        none = subprocess.DEVNULL
        try:
            done = subprocess.run(
                words, stdin=none, stdout=subprocess.PIPE, stderr=none, timeout=_RESOLVE_S, check=True
            )
        except (subprocess.SubprocessError, OSError):
            return host
        told = dict(line.partition(" ")[::2] for line in done.stdout.decode(errors="replace").splitlines())
        by = [told.get(word, "") for word in ("proxyjump", "proxycommand")]
        way = "".join(f" by {one}" for one in by if one not in ("", "none"))
        machine = plain_host(told.get("hostname", host))
        return f"{told.get('user', '')}@[{machine}]:{told.get('port', '')}{way}"

    def ask(self, asked: Asked) -> Answer | str:
        """Return the answer of a gateway to a step, or why there is none. It blocks for at most 60 s."""
        file = shlex.quote(self.file_of(asked.gateway))
        remote = f"{self._program} deploy --step {file}"
        words = [*self._ssh, *_OPTIONS, "--", self._hosts[asked.gateway], remote]
        try:
            done = subprocess.run(words, input=pack(asked), capture_output=True, timeout=STEP_S, check=False)
        except subprocess.TimeoutExpired:
            return f"no answer within {STEP_S:g} s"
        except OSError as error:
            return f"{words[0]}: {error.strerror}"
        lines = done.stdout.splitlines(keepends=True)
        try:
            return unpack_answer(lines[-1] if lines else b"")
        except ValueError:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            return said[-1] if said else f"{words[0]} ended with status {done.returncode}, without an answer"


def _place(host: str, file: str) -> tuple[str, str]:
    """Return a host and a file in one form. A file that is not below a user's home is that of all users."""
    user, _, machine = host.removeprefix("ssh://").rpartition("@")
    home = "" if file.startswith("/") else user
    return f"{home}@{plain_host(machine.rstrip('/').lower())}", posixpath.normpath(file)


def go(
    rollout: Rollout,
    ask: Callable[[str, str, str], Answer | str],
    told: Callable[[str, str, Answer | str], None],
) -> None:
    """Ask what is due until the roll-out has ended or waits for an agreement.

    `ask` takes gateway, step and the hash of the present file, on a thread. `told` hears each answer. A
    signal that ends commands, or an output that takes nothing more, makes the roll-out go back.
    """
    answers: _Answers = queue.SimpleQueue()
    pool = ThreadPoolExecutor(_THREADS)
    with pool, interrupts.handled(lambda *_: answers.put(None), interrupts.STOPS):
        while not rollout.ended and rollout.phase != "agree":
            for due in rollout.due(time.monotonic()):
                pool.submit(_asked, ask, (due.gateway, due.step, due.old), answers)
            try:
                _take(rollout, answers.get(timeout=_TICK_S), told)
            except queue.Empty:
                rollout.tick(time.monotonic())
    if rollout.phase == "agree" and not answers.empty():  # a signal that came with the last answer
        _take(rollout, answers.get(), told)


def _take(rollout: Rollout, came: _Answered | None, told: Callable[[str, str, Answer | str], None]) -> None:
    """Tell and take an answer, or a signal: None. None of it is lost by another signal."""
    if came is None:
        rollout.stop("interrupted", time.monotonic())
        return
    gateway, step, answer = came
    try:
        told(gateway, step, answer)
    except OSError as error:
        rollout.stop(f"the output takes nothing more ({words_of(error)})", time.monotonic())
    rollout.heard(gateway, answer, time.monotonic())


def _asked(
    ask: Callable[[str, str, str], Answer | str],
    words: tuple[str, str, str],
    answers: _Answers,
) -> None:
    try:
        found = ask(*words)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    answers.put((words[0], words[1], found))


def ask_each(ask: Callable[[str], Answer | str], gateways: Sequence[str]) -> list[Answer | str]:
    """Ask the same of all gateways at once, and return the answers in their order."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(ask, gateways))
