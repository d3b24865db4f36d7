"""Which tests run in one process, if `make test` has several (pytest-xdist), and which begin first.

The tests of a module stay together, and so pay for its fixtures once. All that needs Spark stays together,
because a Spark takes seconds to start and gigabytes. A process that is free takes the next room. So
what takes long is first: else one process would end minutes after the other.
"""

from typing import Final

_SPARK: Final = "spark"
WITH_SPARK: Final = (
    "tests/pipeline/",
    "tests/benchmarks/pipeline/test_sql.py",
    "tests/benchmarks/test_watch_year.py",
    "tests/examples/test_questions.py",
    "tests/appliance/commands/test_run.py::test_the_last_line_of_the_demo",
)
"""What starts the names of tests that need Spark, or its packages."""

LONG: Final = (
    "tests/fuzz/test_fuzz.py",
    "tests/kernel/test_kernel.py",
    "tests/capture/test_tables.py",
    "tests/conformance/test_conformance.py",
    "tests/capture/test_compact.py",
    "tests/devices/upload/test_upload.py",
    "tests/chaos/test_chaos.py",
    "tests/appliance/commands/test_check.py",
    "tests/system/test_hermes.py",
    "tests/appliance/commands/test_run.py",
    "tests/devices/tap/test_recorder.py",
    "tests/bus/embedded/test_microbit.py",
    "tests/appliance/test_sweep.py",
    "tests/appliance/commands/test_reload.py",
    "tests/appliance/commands/test_capture.py",
    "tests/appliance/test_tmq_takeovers.py",
    "tests/appliance/test_failover.py",
    "tests/docs/test_blocks.py",
)
"""The modules that take 15 s and more, longest first; of those that have `WITH_SPARK`, none."""

_TURNS: Final = {name: turn for turn, name in enumerate((_SPARK, *LONG))}


def room(nodeid: str) -> str:
    """Return the name of the room of a test."""
    return _SPARK if nodeid.startswith(WITH_SPARK) else nodeid.split("::")[0]


def turn(nodeid: str) -> int:
    """Return a number that is smaller the earlier a test's room begins."""
    return _TURNS.get(room(nodeid), len(_TURNS))
