"""Which tests run in one process, if `make test` has several (pytest-xdist), and which begin first.

The tests of a module stay together, and so pay for its fixtures once. What needs a session of Spark stays
together, because a Spark takes seconds to start and gigabytes; so does what needs one of Sail, because a
process works with one engine at a time. Commands work on Sail, but for those that are about Spark.
A process that is free takes the next room. So what takes long is first: else one process would end minutes
after the other.
"""

from typing import Final

SPARK: Final = "spark"
SAIL: Final = "sail"

LONG: Final = (
    "tests/kernel/test_kernel.py",
    "tests/docs/test_blocks.py",
    "tests/pipeline/engine/test_servers.py",
    "tests/fuzz/test_fuzz.py",
    "tests/pipeline/engine/test_resident.py",
    "tests/capture/test_tables.py",
    "tests/conformance/test_conformance.py",
    "tests/pipeline/input/test_sound.py",
    "tests/chaos/test_chaos.py",
    "tests/appliance/test_sweep.py",
    "tests/pipeline/jobs/test_since.py",
    "tests/pipeline/jobs/test_killed_bridge.py",
    "tests/pipeline/jobs/test_verdict.py",
    "tests/devices/tap/test_recorder.py",
    "tests/devices/upload/test_upload.py",
    "tests/capture/test_compact.py",
    "tests/system/test_hermes.py",
    "tests/system/test_namespaces.py",
    "tests/appliance/test_failover.py",
    "tests/appliance/web/test_browser.py",
    "tests/buscoupler/test_pipx.py",
    "tests/appliance/test_tmq_takeovers.py",
    "tests/bus/embedded/test_microbit.py",
    "tests/appliance/commands/test_run.py",
    "tests/pipeline/jobs/test_killed_gateway.py",
    "tests/devices/dbp/nodes/test_killed.py",
    "tests/test_layering.py",
    "tests/appliance/commands/test_reload.py",
    "tests/mutants/test_mutants.py",
)
"""The modules that take 15 s and more, longest first; of those that are in rooms of engines, none. What
starts Java comes after two that do not: by then there is an archive of its classes
(tests/pipeline/archives.py).
"""

_TURNS: Final = {name: turn for turn, name in enumerate((SPARK, SAIL, *LONG))}


def room(nodeid: str) -> str:
    """Return the name of the room of a test. tests/pipeline/conftest.py names engines in ids."""
    if "[Spark" in nodeid:
        return SPARK
    if "[Sail" in nodeid:
        return SAIL
    return nodeid.split("::")[0]


def turn(nodeid: str) -> int:
    """Return a number that is smaller the earlier a test's room begins."""
    return _TURNS.get(room(nodeid), len(_TURNS))
