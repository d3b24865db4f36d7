"""Which tests run in one process, if `make test` has several (pytest-xdist), and which begin first.

The tests of a module stay together, and so pay for its fixtures once. All that needs Spark stays together,
because a Spark takes seconds to start and gigabytes. A process that is free takes the next room. So
what takes long is first: else one process would end minutes after the other.
"""

from typing import Final

_SPARK: Final = "spark"
_WITH_SPARK: Final = (
    "tests/pipeline/",
    "tests/benchmarks/test_pipeline_sql.py",
    "tests/benchmarks/test_watch_year.py",
    "tests/examples/test_questions.py",
)
"""What starts the names of tests that need Spark, or its packages."""

LONG: Final[tuple[str, ...]] = ()
"""The modules that take longest, longest first."""

_TURNS: Final = {name: turn for turn, name in enumerate((_SPARK, *LONG))}


def room(nodeid: str) -> str:
    """Return the name of the room of a test."""
    return _SPARK if nodeid.startswith(_WITH_SPARK) else nodeid.split("::")[0]


def turn(nodeid: str) -> int:
    """Return a number that is smaller the earlier a test's room begins."""
    return _TURNS.get(room(nodeid), len(_TURNS))
