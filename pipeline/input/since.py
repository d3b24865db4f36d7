"""The note of up to when a job has looked at a capture, for `--since-last`."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from bus.machine.partial import replacing
from capture.files import gateway_of
from pipeline.errors import PipelineError

BEHIND: Final = (
    ": what it writes for a time before the bound is looked at by no --since-last: use --from, --to"
)
_TO_NS: Final = "to_ns"


def note_of(job: str, where: str, gateways: Iterable[str] = ()) -> Path:
    """Return the file of the note: below $XDG_STATE_HOME/buscoupler, by job, capture, and the gateways that
    alone are looked at, if there are some."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    looked = " ".join((job, str(Path(where).resolve()), *sorted(set(gateways))))
    name = hashlib.sha256(looked.encode()).hexdigest()[:16]
    return state / "buscoupler" / "looked" / f"{name}.json"


def behind(newest: Mapping[Path, int], to_ns: int) -> dict[str, int]:
    """Return the gateways that have written nothing as new as the time up to which a job looks, each with the
    time of its newest row in ns: by a clock that is late, or in files that come late. `newest` is by file."""
    found = dict[str, int]()
    for path, newest_ns in newest.items():
        gateway = gateway_of(path)
        found[gateway] = max(newest_ns, found.get(gateway, 0))
    return {name: newest_ns for name, newest_ns in sorted(found.items()) if newest_ns < to_ns}


def load(note: Path) -> int | None:
    """Return up to when the job has looked, in ns since 1970; None if never. Raises `PipelineError`."""
    try:
        return int(json.loads(note.read_text())[_TO_NS])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise PipelineError(f"{note}: not a note of --since-last; remove it to look at all again") from None


def store(note: Path, job: str, where: str, to_ns: int) -> None:
    """Note that the job has looked up to then. Raises `PipelineError`."""
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        with replacing(note) as partial:
            partial.write_text(json.dumps({"job": job, "capture": where, _TO_NS: to_ns}))
    except OSError as error:
        raise PipelineError(f"{note}: cannot note up to when was looked: {error.strerror}") from None
