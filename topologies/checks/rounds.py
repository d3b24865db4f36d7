"""Search for loops through sides that rename: a frame that comes back under another name goes on, too.

A frame is followed with its name at each part. It goes round if it comes again to where it was under the
same name, or under one that gets longer each time. As elsewhere, a loop of trunks alone is harmless: the
envelope of a renamed frame keeps its key.
"""

from collections.abc import Iterator
from typing import NamedTuple

from bus.names import Names
from topologies.model import Topology
from topologies.wiring.filters import Tokens, all_names, tokens
from topologies.wiring.flow import Flow
from topologies.wiring.graph import core
from topologies.wiring.segments import Edge

STATES = 200_000  # that are looked at, at most


class State(NamedTuple):
    """A frame with these tokens at a part, which it came to by a link."""

    node: str
    frame: Tokens
    by: int


class Round(NamedTuple):
    """A loop: its steps, each from one part over a link to the next, and the frame before the first."""

    steps: list[tuple[str, Edge, str]]
    frame: Tokens


Ways = dict[State, list[State]]


def renamed_rounds(topology: Topology, flow: Flow) -> Iterator[Round]:
    """Yield loops that lead over a side that renames, each plain link once at most."""
    if not any(flow.renames(flow.edges[number]) for number in core([edge[:2] for edge in flow.edges])):
        return  # as at devices, from which no other way leads back
    ways = _pruned(_ways(topology, flow))
    seen = set[int]()
    for here, others in ways.items():
        for there in others:
            edge = flow.edges[there.by]
            if edge.trunk or there.by in seen:
                continue
            path = _path(ways, there, here)
            if path and any(flow.renames(flow.edges[state.by]) for state in path):
                seen.update(state.by for state in path)
                nodes = [path[-1].node, *(state.node for state in path)]
                steps = [
                    (one, flow.edges[state.by], state.node) for one, state in zip(nodes, path, strict=False)
                ]
                yield Round(steps, path[-1].frame)


def _ways(topology: Topology, flow: Flow) -> Ways:
    """Return where each frame goes that a side renames, from one state to the next."""
    numbers = {id(edge): number for number, edge in enumerate(flow.edges)}
    named = sorted({tokens(names) for names in all_names(topology)} | {()})
    waiting = [
        State(node, frame, numbers[id(edge)])
        for edge in flow.renamed
        for source, node in ((edge.one, edge.other), (edge.other, edge.one))
        for one in named
        if (frame := flow.crossed(edge, one, source)) is not None
    ]
    ways: Ways = {}
    while waiting and len(ways) < STATES:
        here = waiting.pop()
        if here in ways:
            continue
        ways[here] = [
            State(edge.other if edge.one == here.node else edge.one, frame, number)
            for edge in flow.at[here.node]
            if (number := numbers[id(edge)]) != here.by
            and (frame := flow.crossed(edge, here.frame, here.node)) is not None
        ]
        waiting += ways[here]
    return ways


def _pruned(ways: Ways) -> Ways:
    """Return the states from which frames can go on for ever."""
    before: dict[State, list[State]] = {}
    for here, others in ways.items():
        for there in others:
            before.setdefault(there, []).append(here)
    left = {here: len(others) for here, others in ways.items()}
    ended = [here for here, count in left.items() if not count]
    gone = set(ended)
    while ended:
        for here in before.get(ended.pop(), ()):
            left[here] -= 1
            if not left[here]:
                ended.append(here)
                gone.add(here)
    return {
        here: [one for one in others if one not in gone] for here, others in ways.items() if here not in gone
    }


def _path(ways: Ways, start: State, goal: State) -> list[State]:
    """Return the states from `start` to `goal`, both included; empty if there is no way."""
    came: dict[State, State | None] = {start: None}
    waiting = [start]
    while waiting and goal not in came:
        here = waiting.pop()
        for there in ways.get(here, ()):
            if there not in came:
                came[there] = here
                waiting.append(there)
    if goal not in came:
        return []
    path: list[State] = []
    state: State | None = goal
    while state is not None:
        path.append(state)
        state = came[state]
    return path[::-1]


def told(topology: Topology, flow: Flow, found: Round) -> str:
    """Return under which name a frame comes back, in words; "" if it is the same."""
    known = Names(name for names in all_names(topology) for name in names)
    some = sorted({tokens(names) for names in all_names(topology)}, key=lambda frame: (len(frame), frame))
    for frame in (*some, found.frame):
        back = _round(flow, found, frame)
        if frame and back is not None and back != frame:
            return f"{known.show(frame)} comes back as {known.show(back)}"
    return ""


def _round(flow: Flow, found: Round, frame: Tokens) -> Tokens | None:
    """Return the name of a frame after one round, None if it does not get round."""
    back: Tokens | None = frame
    for source, edge, _ in found.steps:
        back = None if back is None else flow.crossed(edge, back, source)
    return back
