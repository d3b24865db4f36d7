"""Python's side of Spark, imported without pandas: that takes 0.3 s of the processor and 40 MB of a command,
and no job has tables of pandas.

Who imports pandas later in this process can give its tables to Spark; Arrow takes what else is of pandas once
it has made such a table.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from bus.machine.late import hidden, placed

_PANDAS: Final = "pandas"
_TYPES: Final = "pandas.api.types"
_ASKED: Final = ("is_datetime64_dtype", "is_timedelta64_dtype")
_CLIENT: Final = "pyspark.sql.connect.session"


def import_pyspark() -> None:
    """Import what pyspark imports at its first call of Java, and pyarrow, which looks for pandas once: at its
    first array."""
    with hidden(_PANDAS):
        import_module("pyarrow").array(())
    with _in_name():
        import_module("pyspark.sql.functions")
        import_module("pyspark.testing.utils")


def import_client() -> None:
    """Import the client of Spark Connect."""
    import_pyspark()
    with _in_name():
        import_module(_CLIENT)


@contextmanager
def _in_name() -> Iterator[None]:
    """Let imports in the block find pandas, if it is installed, without what it is: pyspark asks for its
    version, and takes no client without it."""
    from importlib import metadata

    try:
        version = metadata.version(_PANDAS)
    except metadata.PackageNotFoundError:
        yield
        return
    with placed(_PANDAS, _TYPES) as places:
        if _PANDAS in places:
            vars(places[_PANDAS]).update(__version__=version, DataFrame=_Table)
        if _TYPES in places:
            vars(places[_TYPES]).update({name: _late(name) for name in _ASKED})
        yield


def _late(name: str) -> Callable[..., Any]:
    """Return a function of `pandas.api.types`, which is imported when it is asked."""
    return lambda *asked: getattr(import_module(_TYPES), name)(*asked)


class _Tables(type):
    def __instancecheck__(cls, one: object) -> bool:
        pandas: Any = sys.modules.get(_PANDAS)
        if type(pandas) is not ModuleType or not isinstance(one, pandas.DataFrame):
            return False
        import_module("pyarrow").table({}).to_pandas()  # it looks for pandas again to make such a table
        return True


class _Table(metaclass=_Tables):
    """The class of tables of pandas, for who asks whether something is one: nothing is without pandas."""
