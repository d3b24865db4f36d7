"""The note of up to when a job has looked at a capture, for `--since-last`."""

import hashlib
import json
import os
from pathlib import Path
from typing import Final

from pipeline.errors import PipelineError

_TO_NS: Final = "to_ns"


def note_of(job: str, where: str) -> Path:
    """Return the file of the note: below $XDG_STATE_HOME/buscoupler, by job and capture."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    name = hashlib.sha256(f"{job} {Path(where).resolve()}".encode()).hexdigest()[:16]
    return state / "buscoupler" / "looked" / f"{name}.json"


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
    partial = note.with_suffix(f".{os.getpid()}.tmp")
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps({"job": job, "capture": where, _TO_NS: to_ns}))
        partial.replace(note)
    except OSError as error:
        raise PipelineError(f"{note}: cannot note up to when was looked: {error.strerror}") from None
