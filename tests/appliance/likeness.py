"""The likeness of two appliances: all that their objects hold, by the path that leads there.

What a configuration makes is there and compared; what time, chance and traffic make is left out by name.
"""

import enum
import re
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Final

from appliance.compose import Appliance
from tests.appliance.variants import spelled

_OURS: Final = frozenset({"appliance", "bridges", "bus", "capture", "devices", "topologies"})
_HELD: Final = frozenset({"Leg", "Plan"})
"""Frozen records that hold what runs."""
_SHARED: Final = frozenset({"Accounts", "Appliance", "Monitor", "Names"})
"""The types of objects that are reached by many ways, and have no settings or are looked at by themselves."""
_WORDS: Final = """
    captured counts joined site parts loop _loop where _seen view _view _binding verdicts _hub _twin
    _ears _bus _make taps _armed _fresh _before _owed _counts _histories _looking _recording _rounds
    _presence _task _timer _names_writer _kept _inherited _anew _is_anew _changed _pending _ledger
    _values passed stats _drawn origin sequence number _number boot _boot _head _last _lateness _stamps
    _node _hello _random id salt _started_s _looked_s _turned_s _born_s _start_s _last_s _said_s _due_s
    _now _now_s since_s _since _since_s _at_s _ahead_s _subjects _waiting _places _notice_timer _wake
    _serial started_ns _connection _files _descriptor _found
"""
_PASSING: Final = frozenset(_WORDS.split())
"""Attributes with what is elsewhere, and what traffic, reloads, time and chance make."""
_READ_ONCE: Final = re.compile(
    r"options\.(queue_bytes|age_ms|connections)$|_common\.options\.heartbeat_s$|^page\.url$"
)
"""Settings that are read where a link is made, and kept elsewhere; and the page's address: it may be any."""


class _Walk:
    """A walk through objects, each once."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._seen: dict[int, Any] = {}

    def visit(self, value: Any, path: str) -> None:
        if isinstance(value, FunctionType | MethodType | partial):
            self._visit_function(value, path)
        elif isinstance(value, Mapping | list | tuple | deque | set | frozenset):
            self._visit_many(value, path)
        elif isinstance(value, enum.Enum | type) or type(value).__module__.partition(".")[0] not in _OURS:
            self.found[path] = spelled(_word(value))
        elif type(value).__name__ not in _SHARED:
            self._visit_ours(value, path)

    def _visit_function(self, value: Any, path: str) -> None:
        if isinstance(value, partial):
            self.visit((value.func, *value.args), f"{path}()")
            self.visit(value.keywords, f"{path}()")
        elif isinstance(value, MethodType):
            self.found[path] = value.__func__.__qualname__
            self.visit(value.__self__, f"{path}.self")
        elif self._is_new(value):
            self.found[path] = value.__qualname__
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                self.visit(cell.cell_contents, f"{path}~{name}")

    def _is_new(self, value: Any) -> bool:
        is_new = id(value) not in self._seen
        self._seen[id(value)] = value  # which keeps it, and so its number
        return is_new

    def _visit_many(self, value: Any, path: str) -> None:
        if hasattr(value, "_fields"):
            for name in value._fields:
                self._visit_field(name, getattr(value, name), path)
            return
        self.found[f"{path}#"] = str(len(value))
        if isinstance(value, Mapping):
            for key, one in _items(value):
                if key.strip("'") not in _PASSING:
                    self.visit(one, f"{path}[{key}]")
        else:
            ordered = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
            for number, one in enumerate(ordered):
                self.visit(one, f"{path}[{number}]")

    def _visit_field(self, name: str, value: Any, path: str) -> None:
        if name not in _PASSING and not _READ_ONCE.search(f"{path}.{name}"):
            self.visit(_in_order(value) if name in ("pipes", "sides", "_links") else value, f"{path}.{name}")

    def _visit_ours(self, value: Any, path: str) -> None:
        self.found[path] = type(value).__qualname__
        if _is_record(value) or self._is_new(value):
            for name in _names(value):
                self._visit_field(name, getattr(value, name, None), path)


def _in_order(values: Any) -> Any:
    """Return pipes, links, or the sides of a bridge, in the order of their names, which they keep."""
    if not isinstance(values, list | tuple):
        return values
    return sorted(values, key=lambda one: str(getattr(one, "name", one)))


def _is_record(value: Any) -> bool:
    """Return whether a value is a record, which may be at many places."""
    parameters: Any = getattr(type(value), "__dataclass_params__", None)
    return parameters is not None and parameters.frozen and type(value).__name__ not in _HELD


def _names(value: Any) -> Iterator[str]:
    yield from getattr(value, "__dict__", {})
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        yield from (
            one for one in ((slots,) if isinstance(slots, str) else slots) if not one.startswith("__")
        )


def _word(value: Any) -> str:
    known = isinstance(value, bool | int | float | str | bytes | type | None)
    return repr(value) if known or isinstance(value, enum.Enum) else type(value).__qualname__


def _items(value: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    """Return the items of a mapping; those by the numbers of objects, which differ, by their names."""
    if all(isinstance(key, int) and key > 1 << 33 and hasattr(one, "name") for key, one in value.items()):
        return sorted(((one.name, one) for one in value.values()), key=lambda item: item[0])
    return [
        (spelled(repr(key)) if isinstance(key, str | int | tuple) else "", one) for key, one in value.items()
    ]


def likeness(appliance: Appliance) -> dict[str, str]:
    """Return what an appliance holds, in words, by the path that leads there."""
    walk = _Walk()
    rows = [
        (
            row.hub.name,
            row.name,
            row.label,
            row.far,
            row.edges,
            row.failure,
            row.link.state,
            row.link.queue_bytes,
        )
        for row in appliance.rows()
    ]
    walk.visit(sorted(rows), "rows")
    walk.visit([row[2] for row in rows], "labels")
    walk.visit(appliance.alarms, "alarms")
    for title in sorted(appliance.parts, reverse=True):  # buses before bridges
        walk.visit(appliance.parts[title], title)
    walk.visit(list(appliance.parts), "order")
    for word, one in {
        "page": appliance.page, "said": appliance.alarms.records(), "plant": appliance.plant,
        "resolved": appliance.resolved, "hubs": [hub.name for hub in appliance.hubs()],
    }.items():  # fmt: skip
        walk.visit(one, word)
    return walk.found
