"""The words of engines, whose stacks fill pages, as one line of ours."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pipeline import reach
from pipeline.engine import session
from pipeline.engine.sail import Sail
from pipeline.errors import PipelineError, cause_of
from pipeline.input import read, sound

_NO_ROOM: Final = "Failed to allocate"  # Sail's joins need all of one side in memory


@contextmanager
def in_one_line(local: session.Local | None, where: str, remote: str = "") -> Iterator[None]:
    """Turn what the engine raises in the block into a `PipelineError`. Our own errors stay.

    Of a server (`remote`) that has gone it says what we say at a start. Of a file that is damaged within, an
    engine says no name: so all are then read through.
    """
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j", "grpc"):
            raise
        logging.getLogger("buscoupler").info("Spark's words in full", exc_info=error)
        if remote and (gone := reach.doubt(remote)):
            raise PipelineError(f"the server has gone: {gone}") from None
        bad = [] if read.is_remote(where) else sound.look(Path(where), thorough=True).bad
        if bad:
            raise PipelineError(f"{bad[0].text}; --skip-bad analyses the rest") from None
        place = f"Spark at {remote.partition('/;')[0]}" if remote else "Spark"
        words = _of_sail(local, error) if isinstance(local, Sail) else f"{place}: {cause_of(str(error))}"
        raise PipelineError(words) from None


def _of_sail(local: Sail, error: Exception) -> str:
    spark, words = "or take Spark (--engine spark)", cause_of(str(error))
    if local.has_ended():
        return f"Sail has been killed, as a rule for want of memory; let it hold less (--memory), {spark}"
    more = f"; give it more (--memory), {spark}" if _NO_ROOM in words else ""
    return f"Sail: {words}{more}"


@contextmanager
def without_stacks() -> Iterator[None]:
    """Keep the stacks that py4j logs at Ctrl-C, on any logger, out of the log; with `-v` they stay."""
    root = logging.getLogger()

    def is_brief(record: logging.LogRecord) -> bool:
        ours = record.name.startswith("buscoupler")
        return ours or not record.exc_info or root.isEnabledFor(logging.INFO)

    handlers = tuple(root.handlers)
    for handler in handlers:
        handler.addFilter(is_brief)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(is_brief)
