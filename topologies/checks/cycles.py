"""Search for loops in which frames would go round for ever.

A loop is harmless only if every link in it is a trunk. A frame loses its envelope on a plain link, so the
next bridge takes it for a new frame. A failover group counts as one bridge, because only one of its
candidates forwards at a time. If they join different buses, each of them is judged.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from bus.schema import Where
from topologies.checks.rounds import renamed_rounds, told
from topologies.findings import Finding, error
from topologies.model import Candidate, Topology
from topologies.wiring.filters import Tokens, all_names, tokens
from topologies.wiring.flow import Flow
from topologies.wiring.segments import Edge, Wiring

Step = tuple[str, Edge, str]  # from, over, to
Links = frozenset[tuple[str, str, Where]]
_NAMED = 8  # plain links of a ring
_TOGETHER = 256  # sets of candidates that are judged; beyond that, each bridge's candidates by themselves


def find_cycles(wiring: Wiring) -> list[Finding]:
    """Return an error for each ring that has a link without trunk, whichever candidates forward."""
    found, renamed = dict[Links, list[Step]](), dict[Links, Finding]()
    for forwarding in _forwarding(wiring):
        flow = Flow(wiring.topology, _apart(wiring.links(forwarding)))
        for steps in _find(wiring.topology, flow):
            found.setdefault(_links(steps), steps)
        for one in renamed_rounds(wiring.topology, flow) if flow.renamed else ():
            words = told(wiring.topology, flow, one)
            renamed.setdefault(_links(one.steps), _finding([one.steps], words))
    return [*(_finding(loops) for loops in _rings(list(found.values()))), *renamed.values()]


def _apart(edges: list[Edge]) -> list[Edge]:
    """Return links in which a CAN bus that has sides with TMQ and with protocols is two wires.

    Neither kind takes what the other one sends, by the identifiers. Bytes have none, so protocols of bytes
    may take those of TMQ. What protocols take of each other, `senders` looks at.
    """
    wires = {spoken: {edge.other for edge in edges if _speaks(edge) is spoken} for spoken in (True, False)}
    both = wires[True] & wires[False]
    return [
        edge._replace(other=f"{edge.other} with a protocol") if edge.other in both and _speaks(edge) else edge
        for edge in edges
    ]


def _speaks(edge: Edge) -> bool | None:
    """Return whether a side on a CAN bus has a protocol; None for what is no such side."""
    side = edge.joint.side if edge.joint is not None else None
    if side is None or side.medium is None or "frames" not in side.medium.items:
        return None
    return side.speaks is not None


def _links(steps: list[Step]) -> Links:
    return frozenset((edge.one, edge.other, edge.where) for _, edge, _ in steps)


def _rings(loops: list[list[Step]]) -> list[list[list[Step]]]:
    """Return loops in groups that hang together: two loops with a common link are of one ring."""
    rings: list[tuple[Links, list[list[Step]]]] = []
    for steps in loops:
        links, ring = _links(steps), [steps]
        for other in [one for one in rings if one[0] & links]:
            rings.remove(other)
            links, ring = links | other[0], other[1] + ring
        rings.append((links, ring))
    return [ring for _, ring in rings]


def _forwarding(wiring: Wiring) -> Iterator[set[Candidate]]:
    """Yield sets of candidates that can forward at the same time, one for each bridge.

    Only candidates that differ in what they join are tried one by one; together, if that is not too many.
    """
    edges = defaultdict[Candidate, list[tuple[Any, ...]]](list)
    for joint in wiring.joints:
        side = joint.side
        edges[joint.candidate].append((joint.wire, joint.trunk, side.allowed, side.denied, side.renaming))
    choices = [
        list({str(edges[one]): one for one in reversed(group)}.values())[::-1] for group in wiring.groups
    ]
    if prod(map(len, choices)) <= _TOGETHER:
        yield from map(set, product(*choices))
        return
    best = [choice[0] for choice in choices]
    yield {*best}
    for place, choice in enumerate(choices):
        yield from ({*best[:place], one, *best[place + 1 :]} for one in choice[1:])


def _find(topology: Topology, flow: Flow) -> Iterator[list[Step]]:
    """Yield loops among links that do not rename in which a frame would go round."""
    links = [edge for edge in flow.edges if not flow.renames(edge)]
    edges = sorted(links, key=lambda edge: not edge.trunk)  # trunks first: see _loops
    if not has_loop(edges):
        return
    for frame in sorted({tokens(names) for names in all_names(topology)} | {()}):
        for steps in _loops([edge for edge in edges if _ever(flow, edge, frame)]):
            if _goes_round(flow, steps, frame):
                yield steps


def _ever(flow: Flow, edge: Edge, frame: Tokens) -> bool:
    return flow.lets(edge, frame, edge.one) or flow.lets(edge, frame, edge.other)


def has_loop(edges: list[Edge]) -> bool:
    """Return whether a plain edge is in a loop. Trunks must come first in `edges`: see `_loops`."""
    above: dict[str, str] = {}
    for edge in edges:
        one, other = _root(above, edge.one), _root(above, edge.other)
        if one != other:
            above[one] = other
        elif not edge.trunk:
            return True
    return False


def _root(above: dict[str, str], node: str) -> str:
    """Return the node at the top, and put all nodes on the way there right below it."""
    top = node
    while top in above:
        top = above[top]
    while node != top:
        above[node], node = top, above[node]
    return top


def _loops(edges: list[Edge]) -> Iterator[list[Step]]:
    """Yield one loop for each plain edge that closes one.

    Trunks must come first in `edges`. Then loops of trunks alone are closed by trunks and ignored. Every
    plain edge in a loop either closes it or is in a loop that a later plain edge closes.
    """
    tree: dict[str, list[Edge]] = {}
    group: dict[str, set[str]] = {}
    for edge in edges:
        one = group.setdefault(edge.one, {edge.one})
        other = group.setdefault(edge.other, {edge.other})
        if one is other:
            if not edge.trunk:
                yield [*_way(tree, edge.other, edge.one), (edge.one, edge, edge.other)]
            continue
        small, large = sorted((one, other), key=len)
        large |= small
        group.update(dict.fromkeys(small, large))
        tree.setdefault(edge.one, []).append(edge)
        tree.setdefault(edge.other, []).append(edge)


def _way(tree: dict[str, list[Edge]], start: str, goal: str) -> list[Step]:
    """Return the steps from `start` to `goal` in a forest; none if they are the same."""
    came: dict[str, Step | None] = {start: None}
    waiting = [start]
    while waiting and goal not in came:
        here = waiting.pop()
        for edge in tree.get(here, ()):
            there = edge.other if edge.one == here else edge.one
            if there not in came:
                came[there] = (here, edge, there)
                waiting.append(there)
    steps = []
    while step := came[goal]:
        steps.append(step)
        goal = step[0]
    return steps[::-1]


def _goes_round(flow: Flow, steps: list[Step], frame: Tokens) -> bool:
    forward = all(flow.lets(edge, frame, source) for source, edge, _ in steps)
    return forward or all(flow.lets(edge, frame, target) for _, edge, target in steps)


def _finding(loops: list[list[Step]], more: str = "") -> Finding:
    """Return the error for a ring. It shows the shortest of its loops; `more` is said about its frames."""
    steps = min(loops, key=len)
    first = min((step[0] for step in steps), key=lambda name: (not name.startswith("bus "), name))
    turn = [step[0] for step in steps].index(first)
    names = [step[0] for step in steps[turn:] + steps[:turn]]
    plain = {_links([step]): step for loop in loops for step in loop if not step[1].trunk}
    text = f"frames would go round: {' -> '.join([*names, first])}"
    if len(loops) > 1:
        text += f", and in other ways among {', '.join(sorted({step[0] for loop in loops for step in loop}))}"
    text += f", where {more}" if more else ""
    fix = _fix([*plain.values()])
    return error(max(edge.where for _, edge, _ in plain.values()), f"{text}; {fix}")


def _fix(plain: list[Step]) -> str:
    """Return what to do about a ring with these plain links."""
    never = [step for step in plain if _is_never_trunk(step[1])]
    if never:
        return f"open it by patterns: no trunk is possible at {_named(never)}"
    return f"make every link of it a trunk (plain: {_named(plain)}), or open it"


def _is_never_trunk(edge: Edge) -> bool:
    medium = edge.joint and edge.joint.side.medium
    return medium is not None and medium.plain


def _named(plain: list[Step]) -> str:
    more = [f"{len(plain) - _NAMED} more"] if len(plain) > _NAMED else []
    return ", ".join([*(f"{source} - {target}" for source, _, target in plain[:_NAMED]), *more])
