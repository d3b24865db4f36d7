"""A plugin of pytest that puts one mutant into a run: `MUTANT=PATH:NUMBER pytest -p tests.mutants.plant`."""

import os
from importlib.machinery import SourceFileLoader
from types import CodeType

from tests.mutants.sites import mutated

_path, _, _number = os.environ.get("MUTANT", "").rpartition(":")
_get_code = SourceFileLoader.get_code


def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
    """Return the changed code for the module of the mutant, and never from a cache; else what there is."""
    path = self.get_filename(fullname)
    if not _path or not os.path.samefile(path, _path):
        return _get_code(self, fullname)
    tree = mutated(self.get_data(path).decode(), int(_number))
    return compile(tree, path, "exec", dont_inherit=True)


SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
