"""The changes of a running gateway: the links that come, go and stay, and a line for each change."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from bus.hub import Link
from bus.wire.notation import written
from topologies.model import Gateway
from topologies.resolved.resolve import Resolved
from topologies.wiring.events import EVENTS, LOGS

T = TypeVar("T")
L = TypeVar("L", bound=Link)
Made = TypeVar("Made", bound=Link, covariant=True)
Verb = Literal["added", "removed", "changed", "failed"]


_NAMES = 8  # in a line


class Change(NamedTuple):
    """A difference. `end` is a link of `part`, "" for the part itself; `detail` names settings that differ.

    The detail of one that failed names the link itself. `stays`: whether the link, or the service of a
    device, goes on with what it has; None where that is no question, or is not known beforehand.
    """

    verb: Verb
    part: str
    end: str = ""
    detail: str = ""
    stays: bool | None = None

    def line(self) -> str:
        """Return one line for people."""
        words = (self.part, self.detail) if self.verb == "failed" else self[1:4]
        return f"{self.verb} " + ": ".join(word for word in words if word)


def of_settings(part: str, names: Sequence[str]) -> list[Change]:
    """Return the change of a part whose settings of these names differ; none without names."""
    return [Change("changed", part, detail=", ".join(names))] if names else []


def of_process(old: Resolved, new: Resolved) -> list[Change]:
    """Return what differs beside the parts: names, what is published, the page, memory and alarms."""
    found = of_names(old.listed, new.listed)
    found += of_published(EVENTS.key, old.events, new.events) + of_published(LOGS.key, old.logs, new.logs)
    return found + of_page(old.here, new.here) + of_shares(old.here, new.here) + of_alarms(old, new)


def of_names(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Return the changes from some listed names to others."""
    before, now = set(old), set(new)
    added, removed = [name for name in new if name not in before], [name for name in old if name not in now]
    found: list[tuple[Verb, list[str]]] = [("removed", removed), ("added", added)]
    return [Change(verb, "names", detail=_some(names)) for verb, names in found if names]


def of_published(what: str, old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """Return the change from some buses on which events or logs are published to others."""
    where = ", ".join(f"bus {name}" for name in new) or "no bus"
    return [] if old == new else [Change("changed", what, detail=f"published on {where}")]


def of_alarms(old: Resolved, new: Resolved) -> list[Change]:
    """Return the changes of alarms, and of their outlets."""
    before, now = _alarms(old), _alarms(new)
    found = [Change("removed", name) for name in before if name not in now]
    found += [Change("added", name) for name in now if name not in before]
    return found + [Change("changed", name) for name in now if name in before and now[name] != before[name]]


def _alarms(resolved: Resolved) -> dict[str, object]:
    alarms, outlets = resolved.alarms.alarms, resolved.alarms.outlets
    return {f"alarm {one.name}": one for one in alarms} | {f"outlet {name}": one for name, one in outlets}


def of_shares(old: Gateway, new: Gateway) -> list[Change]:
    """Return the changes of what processes of this gateway take of its machine, and of whom they keep."""
    found = {
        "memory_bytes": old.memory_bytes != new.memory_bytes,
        "busy_poll_us": old.busy_poll_us != new.busy_poll_us,
        "keep_connections_of": old.keep_connections_of != new.keep_connections_of,
    }
    return [Change("changed", "gateway", detail=key) for key, is_new in found.items() if is_new]


def of_page(old: Gateway, new: Gateway) -> list[Change]:
    """Return the change of the gateway's status page, which readers may call by the gateway's address."""
    found = {"status": old.status != new.status, "address": new.status.serve and old.address != new.address}
    return of_settings("gateway", [name for name, is_new in found.items() if is_new])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(map(written, names[:_NAMES])) + more


def pair(old: Sequence[T], new: Sequence[T], *keys: Callable[[T], Any]) -> tuple[list[int | None], list[int]]:
    """Return for each entry of `new` the place of its partner in `old`, and the places that have none.

    Partners are equal by the first of `keys` for which both still have no partner.
    """
    left, found = list(range(len(old))), list[int | None]([None] * len(new))
    for key in keys:
        for number, entry in enumerate(new):
            if found[number] is None:
                partner = next((place for place in left if key(old[place]) == key(entry)), None)
                if partner is not None:
                    found[number] = partner
                    left.remove(partner)
    return found, left


def differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the names whose values differ."""
    return [name for name in {**old, **new} if old.get(name) != new.get(name)]


@dataclass(frozen=True)
class Plan(Generic[Made]):
    """A link of a part before it is made.

    Plans of one `place` lead to the same peers; where also their `settings` are equal, a link of the one
    serves the other. Where only `soft` ones differ, the link may take them over. `choice` only helps to pair
    plans that are alike. `make` raises `LinkError`.
    """

    place: str
    settings: Mapping[str, Any]
    make: Callable[[], Made] = field(compare=False)
    choice: Hashable = field(default=None, compare=False)
    soft: frozenset[str] = field(default=frozenset(), compare=False)


class PlannedLink(NamedTuple, Generic[L]):
    """A link and the plan that it was made from."""

    plan: Plan[L]
    link: L


class Draft(Generic[L]):
    """The links that a part is to have, next to its present links. Nothing is opened or closed yet.

    `ends` are in the order of the plans, and `partners` has for each its place among the old ones, None for
    one that has none; `gone` are the places of old ends that go for good. Raises `LinkError` for a link that
    can never work.
    """

    def __init__(self, old: Sequence[PlannedLink[L]], plans: Sequence[Plan[L]]) -> None:
        self.partners, self.gone = pair(
            [end.plan for end in old],
            plans,
            lambda plan: (plan.place, plan.settings, plan.choice),
            lambda plan: (plan.place, plan.settings),
            lambda plan: plan.place,
        )
        self._old = old
        self.ends = [self._end(plan, place) for plan, place in zip(plans, self.partners, strict=True)]

    def _end(self, plan: Plan[L], place: int | None) -> PlannedLink[L]:
        old = None if place is None else self._old[place]
        return PlannedLink(plan, old.link if old is not None and old.plan == plan else plan.make())

    def close(self) -> None:
        """Let old links take over the new settings that they can, and close the links that do not stay."""
        self.ends = [self._revised(*pair) for pair in zip(self.ends, self.partners, strict=True)]
        kept = {id(end.link) for end in self.ends}
        for end in self._old:
            if id(end.link) not in kept:
                end.link.close()

    def _revised(self, end: PlannedLink[L], place: int | None) -> PlannedLink[L]:
        old = end if place is None else self._old[place]
        names = differing(old.plan.settings, end.plan.settings)
        takes_over = names and end.plan.soft.issuperset(names) and old.link.revise(end.link)
        return PlannedLink(end.plan, old.link) if takes_over else end

    def fates(self) -> dict[str, bool]:
        """Return by place whether the old link of each end that differs would stay.

        It has the links try, so it is for links that are not open and never will be.
        """
        tried = [(end, place, self._revised(end, place)) for end, place in self._differing()]
        return {end.plan.place: revised.link is self._old[place].link for end, place, revised in tried}

    def _differing(self) -> list[tuple[PlannedLink[L], int]]:
        pairs = [
            (end, place) for end, place in zip(self.ends, self.partners, strict=True) if place is not None
        ]
        return [(end, place) for end, place in pairs if end.plan != self._old[place].plan]

    def _is_old(self, end: PlannedLink[L]) -> bool:
        return any(end.link is old.link for old in self._old)

    def staying(self) -> list[PlannedLink[L]]:
        """Return the ends that keep their links. Call it after `close`."""
        return [end for end in self.ends if self._is_old(end)]

    def fresh(self) -> list[PlannedLink[L]]:
        """Return the ends whose links are to be opened. Call it after `close`."""
        return [end for end in self.ends if not self._is_old(end)]

    def changes(self, part: str, more: Callable[[int], list[str]] = lambda _: []) -> list[Change]:
        """List what differs. `more(number)` names what else differs at a new end that has a partner."""
        found = [Change("removed", part, self._old[place].plan.place) for place in self.gone]
        for number, (end, place) in enumerate(zip(self.ends, self.partners, strict=True)):
            if place is None:
                found.append(Change("added", part, end.plan.place))
                continue
            names = differing(self._old[place].plan.settings, end.plan.settings) + more(number)
            if names:
                found.append(Change("changed", part, end.plan.place, ", ".join(dict.fromkeys(names))))
        return found
