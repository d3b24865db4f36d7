"""The words for a defect of what may be another distribution's: a protocol, a medium, a device."""

from pathlib import Path
from traceback import walk_tb

from bus.kinds import load
from bus.text import plain

_OURS = ("appliance", "bridges", "bus", "capture", "devices", "pipeline", "topologies")


def defect(what: str, error: BaseException, module: str) -> str:
    """Return what went wrong in `what`, such as "the protocol", and where in the package of `module`: what it
    called tells less than its own line."""
    package = module.rpartition(".")[0] or module
    walked = [(frame.f_code.co_filename, line, frame) for frame, line in walk_tb(error.__traceback__)]
    own = [one for one in walked if f"{one[2].f_globals.get('__name__')}.".startswith(f"{package}.")]
    file, line, _ = (own or walked)[-1]
    place = "" if file.startswith("<") else f" ({Path(file).name}:{line})"  # of a module that is no Python
    return plain(f"{what} has a defect: {type(error).__name__}: {error}{place}")


def unmade(what: str, name: str) -> str:
    """Return why the class "module:Class" cannot be imported; "" if it can, or if only a library is missing,
    which another machine may have."""
    module = name.partition(":")[0]
    try:
        load(name)
    except Exception as error:  # what others wrote may raise anything
        return "" if _is_missing(error, module) else defect(what, error, module)
    return ""


def _is_missing(error: BaseException, module: str) -> bool:
    """Return whether a library is missing that neither this distribution has nor that of `module`."""
    first = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return bool(first) and first not in (*_OURS, module.partition(".")[0])
