"""The way of frames over links that filter and rename: what a frame is called at the other end of each.

Pure. A name is cut where it gets longer than any pattern of the file could look at, so that a search for
frames that get longer each time round ends.
"""

from collections.abc import Iterable, Iterator, Sequence

from bus.renaming import Renaming
from topologies.model import Topology
from topologies.wiring.filters import Passage, Tokens, all_names, passage, tokens
from topologies.wiring.segments import Edge, Joint


class Flow:
    """The links of a topology, as frames cross them. `edges` may be those of some candidates only."""

    def __init__(self, topology: Topology, edges: Sequence[Edge]) -> None:
        self.edges = edges
        self.at: dict[str, list[Edge]] = {}
        for edge in edges:
            self.at.setdefault(edge.one, []).append(edge)
            self.at.setdefault(edge.other, []).append(edge)
        self._passages: dict[tuple[int, bool], Passage] = {}
        self._renamings = {id(edge): edge.joint.side.renaming for edge in edges if edge.joint is not None}
        self.renamed = list(filter(self.renames, edges))
        self._tokens_max = 2 * max((len(names) for names in all_names(topology)), default=0) + 4

    def renames(self, edge: Edge) -> bool:
        """Return whether a side over which an edge leads gives frames other names."""
        return self._renaming(edge) is not None

    def _renaming(self, edge: Edge) -> Renaming | None:
        return self._renamings.get(id(edge)) or None

    def _passage(self, joint: Joint, inward: bool) -> Passage:
        """Return one direction of a side, which is worked out once."""
        found = self._passages.get((id(joint), inward))
        if found is None:
            found = self._passages[id(joint), inward] = passage(joint.spec, joint.side, inward)
        return found

    def lets(self, edge: Edge, frame: Tokens, source: str) -> bool:
        """Return whether one frame from `source` can cross an edge that does not rename."""
        return edge.joint is None or self._passage(edge.joint, source == edge.other).passes(frame)

    def crossed(self, edge: Edge, frame: Tokens, source: str) -> Tokens | None:
        """Return the tokens of one frame that comes from `source` behind an edge; None if it stays there."""
        joint, renaming, inward = edge.joint, self._renaming(edge), source == edge.other
        if joint is None:
            return frame
        passage = self._passage(joint, inward)
        if not inward and not passage.passes(frame):
            return None
        if renaming is not None:
            turn = (renaming.entering if inward else renaming.leaving)(frame)
            if turn is None:
                return None
            frame = turn.of(frame)[: self._tokens_max]
        return frame if not inward or passage.passes(frame) else None

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
        is_inside, passage = source == edge.one, self._passage(joint, inward)
        if is_inside and not passage.may_pass(start):
            return
        found: Iterable[Tokens] = (start,)
        if renaming is not None:
            found = (tokens(one) for one in (renaming.outside if is_inside else renaming.inside)(start))
        for one in found:
            if is_inside or passage.may_pass(one):
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
