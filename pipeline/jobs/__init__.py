"""The jobs on captures: a module and a record (`JOB`) each. To add one, write its module and name it
here.

`record` says what a record holds, and `ranges` which numbers an option takes; `runner` runs a job by its
record, on a capture of which `opening` takes care, and `words` tell an engine's errors; `rehearsal` runs
small jobs ahead of time, so that Java knows their classes. `asked` finds signals by the names in a command,
and `statements` which statements of SQL only read.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pipeline.jobs.record import Job

NAMES: Final = (
    "audit", "latency", "rates", "last", "failovers", "logs", "signals", "report", "sql", "tokens",
    "quality", "watch", "compact", "load", "warm", "serve", "stop",
)  # fmt: skip


def find(name: str) -> "Job":
    """Import the record of one job."""
    job: Job = import_module(f"{__name__}.{name}").JOB
    return job


def every() -> "Iterator[Job]":
    """Import the records of all jobs, in the order of `NAMES`."""
    return map(find, NAMES)
