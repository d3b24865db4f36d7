"""The files of a roll-out on a gateway: the topology, the one before it (`.FILE.before`), and the state.

The state, `.FILE.rollout`, says which roll-out is on trial, or was the last. While one is on trial, state and
file of the one before are set aside (`.last`): it is the last again if this one goes back. All are written at
once, so a cut leaves whole files. `changing` keeps two roll-outs apart.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from bus.machine.digest import sha256_of
from bus.machine.files import read_bytes, replace_bytes, write_new

_REFUSED: Final = 8


@dataclass(frozen=True, slots=True)
class State:
    """The last roll-out: its `id`, who made it, the hashes of the new file and of that before.

    `until_s`, on the clock of `boot`, is when a trial ends; 0 if it was confirmed. `back` is whether the
    gateway went back from it. `refused` has the ids of some others: they failed, or were told to go back
    before they came.
    """

    id: str = ""
    by: str = ""
    new: str = ""
    old: str = ""
    boot: str = ""
    until_s: float = 0.0
    back: bool = False
    refused: str = ""

    @property
    def trial(self) -> bool:
        return self.until_s > 0.0

    @property
    def known(self) -> str:
        """The hash of the file that it left here; "" if there was no roll-out."""
        return self.old if self.back else self.new

    def refusing(self, name: str) -> "State":
        """Return this state, with the id of another roll-out that is refused from now on."""
        others = [one for one in self.refused.split() if one != name]
        return replace(self, refused=" ".join([*others, name][-_REFUSED:]))

    def over(self) -> bool:
        """Return whether a trial has gone on for too long, or the machine started again in it."""
        return self.trial and (self.boot != boot_id() or time.monotonic() >= self.until_s)


class Keeper:
    """The files of one topology at `path`, as a roll-out keeps them."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).resolve()
        self.before = self.path.with_name(f".{self.path.name}.before")
        self.candidate = self.path.with_name(f".{self.path.name}.new")
        self._state = self.path.with_name(f".{self.path.name}.rollout")
        self._lock = self.path.with_name(f".{self.path.name}.lock")

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Let no other process change these files. Raises `BlockingIOError` if one does, `OSError`."""
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            for left in reversed(range(50)):
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not left:
                        raise
                    time.sleep(0.1)
            yield
        finally:
            os.close(descriptor)

    def hash(self) -> str:
        """Return the hash of the topology. Raises `OSError`."""
        return hash_of(read_bytes(self.path))

    def state(self) -> State:
        """Return the state; an empty one if there is none. A file that is none counts as none."""
        return _state_in(self._state)

    def keep(self, state: State) -> None:
        """Write the state. Raises `OSError`."""
        told = {key: value for key, value in asdict(state).items() if value}  # older versions refuse others
        put(self._state, json.dumps(told).encode())

    def try_out(self, text: bytes, state: State) -> None:
        """Put a new topology in place, with the one before kept. Raises `OSError`.

        The state is first: until the topology itself is replaced, there is nothing to go back from.
        """
        if not self.state().trial:
            self._set_aside()
        self.keep(state)
        put(self.before, read_bytes(self.path))
        replace_bytes(self.path, text)

    def _set_aside(self) -> None:
        for file in (self.before, self._state):
            if file.exists():
                put(_last(file), read_bytes(file))
            else:
                _last(file).unlink(missing_ok=True)

    def go_back(self) -> None:
        """Go back from the last roll-out. What somebody wrote by hand meanwhile stays. Raises `OSError`.

        After a trial it is as if there had been none: the roll-out before is the last again.
        """
        state, last = self.state(), _state_in(_last(self._state))
        if self.hash() == state.new:
            replace_bytes(self.path, read_bytes(self.before))
        if state.trial and last.id and _last(self.before).exists():
            put(self.before, read_bytes(_last(self.before)))
            self.keep(replace(last, refused=state.refused).refusing(state.id))
        else:
            self.keep(replace(state, until_s=0.0, back=True))
        self._forget()

    def confirm(self) -> None:
        """Keep the roll-out that is on trial. Raises `OSError`."""
        self.keep(replace(self.state(), until_s=0.0))
        self._forget()

    def _forget(self) -> None:
        for file in (self.before, self._state):
            _last(file).unlink(missing_ok=True)

    def end_trial(self) -> str:
        """Go back if a trial is over, as after the machine started again. Raises `OSError`.

        Returns who made that roll-out, "" if there is none to go back from.
        """
        if not self._state.exists():
            return ""
        with self.changing():
            state = self.state()
            if not state.over():
                return ""
            self.go_back()
            return state.by or "somebody"


def _last(file: Path) -> Path:
    return file.with_name(f"{file.name}.last")


def _state_in(file: Path) -> State:
    try:
        return State(**json.loads(read_bytes(file)))
    except (OSError, ValueError, TypeError):
        return State()


def put(path: Path, data: bytes) -> None:
    """Write a file at once, new or old; a new one is its owner's only. Raises `OSError`."""
    if path.exists():
        replace_bytes(path, data)
    else:
        write_new(path, data)


def hash_of(data: bytes) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    return sha256_of(data)


def boot_id() -> str:
    """Return the name of this start of the machine, on whose clock monotonic times are."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
