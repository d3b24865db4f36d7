"""The way of frames over links that filter and rename: what a frame is called at the other end of each.

Pure. A name is cut where it gets longer than any pattern of the file could look at, so that a search for
frames that get longer each time round ends.
"""

from collections.abc import Iterable, Iterator, Sequence

from bus.renaming import Renaming
from topologies.model import Topology
from topologies.wiring.filters import Tokens, all_names, may_pass, passes, tokens
from topologies.wiring.segments import Edge


class Flow:
    """The links of a topology, as frames cross them. `edges` may be those of some candidates only."""

    def __init__(self, topology: Topology, edges: Sequence[Edge]) -> None:
        self.edges = edges
        self.at: dict[str, list[Edge]] = {}
        for edge in edges:
            self.at.setdefault(edge.one, []).append(edge)
            self.at.setdefault(edge.other, []).append(edge)
        self._renamings = {id(edge): edge.joint.side.renaming for edge in edges if edge.joint is not None}
        self.renamed = [edge for edge in edges if self._renaming(edge)]
        self._tokens_max = 2 * max((len(names) for names in all_names(topology)), default=0) + 4

    def _renaming(self, edge: Edge) -> Renaming | None:
        return self._renamings.get(id(edge)) or None

    def crossed(self, edge: Edge, frame: Tokens, source: str) -> Tokens | None:
        """Return the tokens of one frame that comes from `source` behind an edge; None if it stays there."""
        joint, renaming, inward = edge.joint, self._renaming(edge), source == edge.other
        if joint is None:
            return frame
        if not inward and not passes(joint.spec, joint.side, frame, inward):
            return None
        if renaming is not None:
            turn = (renaming.entering if inward else renaming.leaving)(frame)
            if turn is None:
                return None
            frame = turn.of(frame)[: self._tokens_max]
        return frame if not inward or passes(joint.spec, joint.side, frame, inward) else None

    def spread(self, edge: Edge, start: Tokens, source: str, back: bool = False) -> Iterator[Tokens]:
        """Yield beginnings that frames have behind an edge, of those that begin with `start` at `source`.

        With `back`, yield what they were in front of it: they come to `source`.
        """
        joint, renaming, inward = edge.joint, self._renaming(edge), (source == edge.other) is not back
        if joint is None:
            yield start
            return
        if renaming is not None and not inward and not renaming.lets_out:
            return
        is_inside = source == edge.one
        if is_inside and not may_pass(joint.spec, joint.side, start, inward):
            return
        found: Iterable[Tokens] = (start,)
        if renaming is not None:
            found = (tokens(one) for one in (renaming.outside if is_inside else renaming.inside)(start))
        for one in found:
            if is_inside or may_pass(joint.spec, joint.side, one, inward):
                yield one[: self._tokens_max]

    def reached(self, start: str, frame: Tokens, back: bool = False) -> dict[str, set[Tokens]]:
        """Return the nodes that frames beginning with these tokens reach from `start`, and their beginnings
        there; with `back`, the nodes from which they come to `start`."""
        found: dict[str, set[Tokens]] = {start: {frame}}
        waiting = [(start, frame)]
        while waiting:
            here, said = waiting.pop()
            for edge in self.at.get(here, ()):
                there = edge.other if edge.one == here else edge.one
                known = found.setdefault(there, set())
                new = [one for one in self.spread(edge, said, here, back) if one not in known]
                known.update(new)
                waiting += ((there, one) for one in new)
        return {node: some for node, some in found.items() if some}
