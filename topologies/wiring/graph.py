"""Searches in graphs of parts and wires, in time that is proportional to the links. Nodes are names. Pure."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

Ways = Mapping[str, Sequence[str]]
"""The neighbours of each node."""


def ways_of(steps: Iterable[tuple[str, str]]) -> Ways:
    """Return the neighbours of each node, from steps that lead from one node to the next."""
    ways = defaultdict[str, list[str]](list)
    for here, there in steps:
        ways[here].append(there)
    return ways


def both_ways(links: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield a step in each direction for each link."""
    for one, other in links:
        yield one, other
        yield other, one


def reached(start: str, ways: Ways, without: Collection[str] = ()) -> set[str]:
    """Return all nodes to which ways lead from `start`, and `start` itself; none goes through `without`."""
    found, waiting = {start}, [start]
    while waiting:
        near = [there for there in ways.get(waiting.pop(), ()) if there not in found and there not in without]
        found.update(near)
        waiting += near
    return found


def blocks(links: Sequence[tuple[str, str]]) -> list[Hashable]:
    """Return a name for the block of each link: links are of one block if a ring leads through both.

    A ring passes each node once, so two links at one node are of one block where their other ends are
    connected without that node. A link that is alone in its block is the only way between its ends. A link
    from a node to itself is a block of its own.
    """
    tree = _Tree(links)
    for one, other in links:
        tree.join(*sorted((one, other), key=tree.depth.__getitem__))
    return [
        number if one == other else tree.highest(max(one, other, key=tree.depth.__getitem__))
        for number, (one, other) in enumerate(links)
    ]


def core(links: Sequence[tuple[str, str]]) -> set[int]:
    """Return the numbers of the links that are in rings or between rings: no others can be gone over for ever
    without turning back.
    """
    at = defaultdict[str, set[int]](set)
    for number, link in enumerate(links):
        for node in link:
            at[node].add(number)
    left, ends = set(range(len(links))), list(at)
    while ends:
        here = at[ends.pop()]
        if len(here) == 1 and len(set(links[min(here)])) == 2:
            left -= (last := set(here))
            for node in links[min(last)]:
                at[node] -= last
                ends.append(node)
    return left


class _Tree:
    """A forest from a depth-first search: each link that is not in it leads from a node to one above it.

    The block of a link of the tree is named by the lower end of its highest link, to which `_highest` leads.
    """

    def __init__(self, links: Sequence[tuple[str, str]]) -> None:
        self.depth: dict[str, int] = {}
        self._above: dict[str, str] = {}
        self._highest: dict[str, str] = {}
        ways = ways_of(both_ways(links))
        for root in ways:
            if root not in self.depth:
                self._grow(root, ways)

    def _grow(self, root: str, ways: Ways) -> None:
        self.depth[root] = 0
        path = [(root, iter(ways[root]))]
        while path:
            here, near = path[-1]
            there = next((node for node in near if node not in self.depth), None)
            if there is None:
                path.pop()
                continue
            self.depth[there], self._above[there] = len(path), here
            path.append((there, iter(ways[there])))

    def highest(self, node: str) -> str:
        """Return the highest node below which all links of the block of `node` are."""
        while (above := self._highest.get(node, node)) != node:
            self._highest[node] = self._highest.get(above, above)
            node = above
        return node

    def join(self, upper: str, lower: str) -> None:
        """Make one block of the links of the tree between two nodes, one of which is above the other."""
        lower = self.highest(lower)
        while self.depth[lower] > self.depth[upper] + 1:
            self._highest[lower] = self._above[lower]
            lower = self.highest(lower)
