"""The import of test modules by several processes of pytest-xdist, each of which needs all of them."""

import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT, guard


def import_in_turn(config: pytest.Config) -> None:
    """Import all test modules, this process from its own place of the list on.

    pytest rewrites the assertions of a module where nobody has done so, and keeps what it compiles. Processes
    that all begin with the first module do all of it at once, each for itself. A module that cannot be
    imported is left to the collection, which says so.
    """
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None:
        return
    names = [_name(path) for path in sorted(_modules(config))]
    start = int(worker["workerid"].removeprefix("gw")) * len(names) // worker["workercount"]
    for name in names[start:] + names[:start]:
        with suppress(Exception, pytest.skip.Exception):
            import_module(name)


def import_without_asammdf() -> None:
    """Import python-can, if it is installed, as if asammdf were not.

    It imports that for one format of files, and so pandas and SymPy: a second and 140 MB of each process.
    """
    with suppress(ModuleNotFoundError), pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "asammdf", None)
        import_module("can")


def _modules(config: pytest.Config) -> Iterable[Path]:
    """Yield the test modules below the folders that are asked for."""
    folders = (config.invocation_params.dir / argument for argument in config.args)
    found = (path for folder in folders if folder.is_dir() for path in folder.rglob("test_*.py"))
    return (path for path in found if not _is_left_out(path, config))


def _is_left_out(path: Path, config: pytest.Config) -> bool:
    return bool(config.getoption("quick")) and guard.is_slow(str(path.relative_to(ROOT)))


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)
