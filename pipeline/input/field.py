"""Files of the field as captures: a job that is asked about one reads rows that are made of it meanwhile."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bus.machine.scratch import Scratch
from pipeline.errors import PipelineError
from pipeline.input import read

Say = Callable[[str], None]
_GATEWAY: Final = "here"
"""The name that rows of a file have, as with `capture import`."""


@contextmanager
def imported(options: argparse.Namespace, is_followed: bool, tell: Say, warn: Say) -> Iterator[str]:
    """Yield where the capture of a command is: of a file a directory, which is there for the block.

    Raises `CaptureError` if the file is of no format that is known, and `PipelineError` if the job needs a
    directory that stays.
    """
    place: str = options.directory
    if read.is_remote(place) or not Path(place).is_file():
        yield place
        return
    if is_followed or options.remote or vars(options).get("since_last"):
        raise PipelineError(
            f"{place}: a file; --remote, --since-last and watch need a directory: capture import makes one"
        )
    from capture.formats.imports import imported as taken

    with Scratch("import-") as root:
        done = taken(Path(place), Path(root), _GATEWAY)
        tell(f"{place}: {done.format}, {done.written:,} rows")
        for line in done.told:
            warn(f"{place}: {line}")
        if not done.written:
            raise PipelineError(f"{place}: no rows in it")
        yield root
