"""A process in which only some modules of other projects are there, as if no others were installed.

Its argument is JSON: the modules that are missing, and the command lines to run. It prints the exit status
and the standard error of each, as JSON; a traceback is in that too.
"""

import importlib
import json
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import ModuleSpec, PathFinder
from tempfile import TemporaryFile
from types import ModuleType


class Missing(PathFinder):
    """A finder of modules that does not see some."""

    names: frozenset[str] = frozenset()

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in cls.names:
            return None
        return super().find_spec(name, path, target)


def hide(names: list[str]) -> None:
    """Let modules be missing, also those that an editable installation would find by a finder of its own."""
    Missing.names = frozenset(names)
    sys.meta_path[:] = [Missing if one is PathFinder else one for one in sys.meta_path]
    importlib.invalidate_caches()


def ran(words: list[str]) -> tuple[object, str]:
    """Run a command, and return its exit status and what it says."""
    from appliance.commandline.cli import main

    status: object = None
    with TemporaryFile("w+") as said, TemporaryFile("w+") as shown:
        with redirect_stderr(said), redirect_stdout(shown):
            try:
                status = main(words)
            except SystemExit as stop:
                status = stop.code
            except BaseException:
                traceback.print_exc()
        said.seek(0)
        return status, said.read()


if __name__ == "__main__":
    missing, commands = json.loads(sys.argv[1])
    hide(missing)
    print(json.dumps([ran(words) for words in commands]))
