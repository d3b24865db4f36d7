"""A step of a roll-out on the gateway itself: check, apply, health, confirm, back.

As a program, `FILE GATEWAY ID`, it is the guard: it goes back from a roll-out that nobody confirms.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from appliance.local.places import runtime_directory
from appliance.reload.client import reload, reload_sockets
from appliance.reload.outcome import Request
from appliance.rollout.keeper import Keeper, State, boot_id, hash_of, put
from appliance.rollout.steps import HOLD_S, Answer, Asked
from appliance.status.client import ask_all, status_sockets
from appliance.status.health import WORDS
from bus.errors import BusError, words_of

_RELOAD_S = 30.0
_GUARD_S = 1.0
_HEALTH_S = 20.0  # also of a machine that is busy
_BY_HAND = "was changed by hand since the last roll-out: look at the difference, then use --force"
_LATE = "is left as it is: this roll-out has gone back here already"
_SHARED = "belongs to another gateway of this roll-out too: give each its own, with {gateway} in --to"


Foresee = Callable[[str, str, str], list[str]]
"""A function that returns what a reload from a file to another changes on a gateway. Raises `BusError` with
what is wrong."""


class Station:
    """The steps of a roll-out on this machine, for the topology at `file` and one `gateway`."""

    def __init__(self, file: str, gateway: str, foresee: Foresee = lambda *_: []) -> None:
        self._keeper, self._gateway, self._foresee = Keeper(file), gateway, foresee

    def do(self, asked: Asked) -> Answer:
        """Do a step and return the answer. It never raises for what a machine or a file can be."""
        steps: dict[str, Callable[[Asked], Answer]] = {
            "look": self._look, "apply": self._apply, "health": self._health, "confirm": self._confirm,
            "back": self._back,
        }  # fmt: skip
        try:
            with self._keeper.changing():
                if asked.step in ("look", "apply") and self._keeper.state().over():
                    self._return()
                return steps[asked.step](asked)
        except BlockingIOError:
            return Answer(
                f"{self._keeper.path}: another step of a roll-out is under way here", asked.step != "look"
            )
        except (OSError, ValueError) as error:  # also a file that is too long
            return Answer(f"{self._keeper.path}: {words_of(error)}", self._keeper.state().trial)

    def _look(self, asked: Asked) -> Answer:
        """Say whether the new file would do here, and what it would change. Nothing is changed."""
        present = self._keeper.hash()
        if text := self._occupied(asked, present):
            return Answer(text, hash=present)
        put(self._keeper.candidate, asked.text.encode())
        try:
            found = self._foresee(str(self._keeper.path), str(self._keeper.candidate), self._gateway)
        except BusError as error:
            return Answer(self._told(str(error)), hash=present)
        finally:
            self._keeper.candidate.unlink(missing_ok=True)
        word, line = self.health()
        if word == "absent":
            return Answer(line, hash=present)
        return Answer(hash=present, word=word, line=line, lines=tuple(found))

    def _occupied(self, asked: Asked, present: str) -> str:
        """Return why this roll-out may not begin here; "" if it may."""
        state = self._keeper.state()
        if state.trial and state.id != asked.id:
            return f"{self._keeper.path}: a roll-out of {state.by} is on trial here: wait until it has ended"
        by_hand = bool(state.known) and present != state.known and not asked.force
        return f"{self._keeper.path} {_BY_HAND}" if by_hand else ""

    def _told(self, text: str) -> str:
        return text.replace(str(self._keeper.candidate), str(self._keeper.path))

    def _apply(self, asked: Asked) -> Answer:
        present, text = self._keeper.hash(), asked.text.encode()
        if found := self._occupied(asked, present):
            return Answer(found, hash=present)
        state = self._keeper.state()
        if asked.id in (state.id, *state.refused.split()):
            is_here = asked.id == state.id and not state.back
            return Answer(f"{self._keeper.path} {_SHARED if is_here else _LATE}", hash=present)
        if present != asked.old:
            return Answer(f"{self._keeper.path} was changed since it was looked at", hash=present)
        until_s = time.monotonic() + HOLD_S
        facts = asked.id, asked.by, hash_of(text), present, boot_id(), until_s
        state = State(*facts, refused=state.refused)
        self._guard(asked.id)  # it waits for this step, and is there if the step is killed
        self._keeper.try_out(text, state)
        if failed := "; ".join(self._reload()):
            self._return()
            return Answer(f"{failed}; it went back", False, self._keeper.hash())
        return Answer(touched=True, hash=state.new)

    def _guard(self, name: str) -> None:
        """Start the process that goes back if this roll-out is not confirmed in time."""
        words = [sys.executable, "-m", __name__, str(self._keeper.path), self._gateway, name]
        none = subprocess.DEVNULL
        subprocess.Popen(
            words, stdin=none, stdout=none, stderr=none, start_new_session=True, cwd="/", env=_environ()
        )

    def _health(self, asked: Asked) -> Answer:
        """Say how the gateway is. The roll-out's trial goes on from now."""
        state = self._keeper.state()
        if state.id != asked.id or not state.trial:
            return Answer("its trial is over: it went back by itself", False, self._keeper.hash())
        self._keeper.keep(replace(state, until_s=time.monotonic() + HOLD_S))
        word, line = self.health()
        return Answer(touched=True, hash=self._keeper.hash(), word=word, line=line)

    def _confirm(self, asked: Asked) -> Answer:
        state = self._keeper.state()
        if state.id != asked.id or state.back:
            return Answer("its trial is over: it went back by itself", False, self._keeper.hash())
        self._keeper.confirm()
        return Answer(touched=True, hash=self._keeper.hash())

    def _back(self, asked: Asked) -> Answer:
        """Go back from the roll-out `asked.id`, or from the last one that was confirmed."""
        state, present = self._keeper.state(), self._keeper.hash()
        if asked.id and state.id != asked.id:
            # Its way may have been cut behind the request to apply it, which then comes later.
            self._keeper.keep(state.refusing(asked.id))
            return Answer(hash=present)
        if state.back or not state.id:
            return Answer("" if asked.id else "there is no roll-out to go back from", hash=present)
        if not asked.id and state.trial:
            return Answer(f"a roll-out of {state.by} is on trial here: wait until it has ended", hash=present)
        if present != state.new and not asked.force and present != state.old:
            return Answer(f"{self._keeper.path} {_BY_HAND}", True, present)
        failed = "; ".join(self._return())
        return Answer(failed, bool(failed), self._keeper.hash())

    def _return(self) -> list[str]:
        """Go back to the file before, and return what a reload could not do."""
        self._keeper.go_back()
        return self._reload()

    def expire(self, name: str) -> bool:
        """Go back if the trial `name` is over. Return whether a guard has no more to do. Raises `OSError`."""
        with self._keeper.changing():
            state = self._keeper.state()
            if state.id == name and state.over():
                self._return()
            state = self._keeper.state()
            return state.id != name or not state.trial

    def _directory(self) -> Path | None:
        """Return the directory of the sockets of this gateway, if it runs as this user; None: search."""
        for one in runtime_directory().glob(f"*/{self._gateway}"):
            if any(reload_sockets(one)):
                return one
        return None

    def _reload(self) -> list[str]:
        """Let the processes of this gateway apply the file, and return what failed."""
        failed, meant = list[str](), False
        request = Request(str(self._keeper.path), self._gateway)
        for path in reload_sockets(self._directory()):
            try:
                outcome = reload(path, request, _RELOAD_S)
            except (OSError, ValueError) as error:
                failed.append(f"{path}: no answer: {words_of(error)}")
                continue
            if outcome is not None and outcome.meant:
                meant = True
                failed += filter(None, (outcome.error, *outcome.failed))
        return failed if meant or failed else [f"no process runs {self._keeper.path} as {self._gateway}"]

    def health(self) -> tuple[str, str]:
        """Return the worst health of the processes of this gateway, with its line; `absent` without any."""
        answers = dict(ask_all(status_sockets(self._directory()), _HEALTH_S))
        found = list(_healths(answers.values(), self._gateway))
        if not found:
            return "absent", "; ".join(
                (f"no process of {self._gateway} answers here", *_faults(answers, self._gateway))
            )
        return max(found, key=lambda one: WORDS.index(one[0]))


def _healths(answers: Iterable[object], gateway: str) -> Iterator[tuple[str, str]]:
    for status in answers:
        if isinstance(status, dict) and status["gateway"] == gateway and status.get("health"):
            health = status["health"]
            word = health["word"] if health["word"] in WORDS else "trouble"
            yield word, health["line"]


def _faults(answers: Mapping[Path, object], gateway: str) -> Iterator[str]:
    """Yield why there is no status of processes of a gateway, but for those that are no more."""
    for path, found in answers.items():
        if path.parent.name != gateway or isinstance(found, (ConnectionRefusedError, FileNotFoundError)):
            continue
        if isinstance(found, (OSError, ValueError)):
            yield f"{path}: {words_of(found)}" if isinstance(found, OSError) else str(found)


def _environ() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def guard(file: str, gateway: str, name: str) -> None:
    """Wait until the roll-out `name` is confirmed or has gone back; go back when its time is over."""
    station = Station(file, gateway)
    while True:
        time.sleep(_GUARD_S)
        try:
            if station.expire(name):
                return
        except OSError:  # a step is under way, or the disk is full: later
            if not Path(file).parent.exists():
                return  # what it would bring back has gone, too


if __name__ == "__main__":
    guard(*sys.argv[1:])
