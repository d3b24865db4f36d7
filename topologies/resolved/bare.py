"""Records without files of keys and certificates: a plan needs none, and who plans may lack them. Pure."""

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar, cast

from bus.schema import settings_of
from topologies.resolved.brokers import CandidateFacts

T = TypeVar("T")
_HERE = __name__.rpartition(".")[0]


def bare(value: T) -> T:
    """Return a record of a part, or what holds such records, with nothing in it that is signed or proven."""
    return cast(T, _bare(value))


def _bare(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _bare(one) for key, one in value.items()}
    if type(value) is tuple:
        return tuple(map(_bare, value))
    if isinstance(value, CandidateFacts):
        return value._replace(tls=(), keys=())
    if not is_dataclass(value) or isinstance(value, type) or not type(value).__module__.startswith(_HERE):
        return value
    found = settings_of(value).items()
    return replace(value, **{name: () if name == "keys" else _bare(one) for name, one in found})
