"""The sinks of a watch's alerts, besides a bus and files: a URL, a program, or a function of the user's.

A sink takes the alerts of one batch as lines of JSON, and the batch's number. It may be given a batch again
after a crash, with the same number: who must not act twice remembers the number. What it raises ends the
watch, which goes on with the same batch when it is started again.
"""

import shlex
import subprocess
import urllib.error
from collections.abc import Callable, Sequence
from typing import Final

from bus.kinds import load
from pipeline.errors import PipelineError

Sink = Callable[[Sequence[str], int], None]

LINES_MOST: Final = 10_000
"""Alerts of one batch that a sink is given; more are counted and left out."""

_REPLY_S: Final = 30.0


def posted(url: str) -> Sink:
    """Make a sink that posts the lines to a URL (`application/x-ndjson`; the batch is the header Batch).

    Raises `PipelineError` for another scheme, and so does the sink if the lines are not taken within 30 s.
    """

    def post(lines: Sequence[str], batch: int) -> None:
        import urllib.request

        body = "".join(f"{line}\n" for line in lines).encode()
        headers = {"Content-Type": "application/x-ndjson", "Batch": str(batch)}
        try:
            request = urllib.request.Request(url, data=body, headers=headers)
            urllib.request.urlopen(request, timeout=_REPLY_S).close()
        except (OSError, ValueError) as error:
            raise PipelineError(f"--post {url}: {_reason(error)}") from None

    if not url.startswith(("http://", "https://")):
        raise PipelineError(f"--post {url}: give http:// or https://")
    return post


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"it answered {error.code}"
    return str(error.reason if isinstance(error, urllib.error.URLError) else error)


def piped(command: str) -> Sink:
    """Make a sink that runs a program for each batch: the lines on its standard input, the batch as its last
    argument.

    Raises `PipelineError` for no program, and so does the sink if the program fails or takes over 30 s.
    """
    words = shlex.split(command)

    def run(lines: Sequence[str], batch: int) -> None:
        try:
            text = "".join(f"{line}\n" for line in lines)
            done = subprocess.run([*words, str(batch)], input=text, text=True, timeout=_REPLY_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PipelineError(f"--pipe {command}: {error}") from None
        if done.returncode:
            raise PipelineError(f"--pipe {command}: it ended with status {done.returncode}")

    if not words:
        raise PipelineError("--pipe: give a program")
    return run


def called(name: str) -> Sink:
    """Find the function MODULE:FUNCTION, which is a sink itself. Raises `PipelineError` if there is none."""
    try:
        found: Sink = load(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise PipelineError(f"--call {name}: {error}") from None
    return found


SINKS: Final = {"post": posted, "pipe": piped, "call": called}
"""The makers of sinks, by the option that asks for one."""
