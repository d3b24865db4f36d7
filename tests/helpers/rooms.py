"""Which tests run in one process, if `make test` has several (pytest-xdist), and which begin first.

The tests of a module stay together, and so pay for its fixtures once. What needs a session of Spark stays
together, because a Spark takes seconds to start and gigabytes; so does what needs one of Sail, because a
process works with one engine at a time. Commands work on Sail, but for those that are about Spark.
A process that is free takes the next room. So what takes long is first: else one process would end minutes
after the other.
"""

from functools import cache
from typing import Final

from tests.helpers.guard import is_slow, slow

SPARK: Final = "spark"
SAIL: Final = "sail"
WHEEL: Final = "tests/buscoupler"
"""The folder with the tests of the wheel, which takes seconds to build."""

LONG: Final = (
    "tests/kernel/test_kernel.py",
    "tests/docs/test_blocks.py",
    "tests/pipeline/engine/test_servers.py",
    "tests/system/test_rollout.py",
    "tests/pipeline/engine/test_resident.py",
    "tests/fuzz/test_fuzz.py",
    "tests/capture/test_tables.py",
    "tests/appliance/test_failover.py",
    "tests/appliance/web/test_browser.py",
    "tests/conformance/test_conformance.py",
    "tests/chaos/test_chaos.py",
    "tests/pipeline/jobs/test_killed_bridge.py",
    "tests/system/test_namespaces.py",
    "tests/buscoupler",
    "tests/pipeline/input/test_sound.py",
    "tests/devices/tap/test_recorder.py",
    "tests/appliance/test_sweep.py",
    "tests/devices/upload/test_upload.py",
    "tests/conformance/test_listeners.py",
    "tests/system/test_hermes.py",
    "tests/benchmarks/test_startup.py",
    "tests/bus/leases/test_candidate.py",
    "tests/benchmarks/test_relayed.py",
    "tests/capture/formats/test_formats.py",
    "tests/benchmarks/test_healthy.py",
    "tests/bus/embedded/test_c_node_builds.py",
    "tests/capture/test_compact.py",
    "tests/appliance/test_tmq_takeovers.py",
    "tests/appliance/web/test_plant.py",
)
"""The modules that take 20 s and more, longest first; of those that are in rooms of engines, none. What
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
    module = nodeid.split("::")[0]
    return WHEEL if module.startswith(f"{WHEEL}/") else module


def turn(nodeid: str) -> int:
    """Return a number that is smaller the earlier a test's room begins.

    Behind those of `LONG` come those with a slow test, which may take as long by now, and then all others.
    """
    name = room(nodeid)
    return _TURNS.get(name, len(_TURNS) + (not _has_slow(name)))


@cache
def _has_slow(module: str) -> bool:
    """Tell whether tests/slow.txt names a module, its folder or one of its tests."""
    return is_slow(module) or any(name.startswith(f"{module}::") for name in slow())
