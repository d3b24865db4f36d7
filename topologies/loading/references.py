"""References of a file: names of what stands elsewhere in it, looked up once all of it is read. Pure."""

from collections.abc import Iterator

from yaml.nodes import MappingNode, Node, ScalarNode

from bus.schema import Ref, Where
from bus.text import nearest
from topologies.findings import Finding, error


class References:
    """The references of a file, each with its place."""

    def __init__(self) -> None:
        self._noted: list[tuple[Ref, str, Where]] = []

    def note(self, to: Ref, name: str, place: Where) -> None:
        """Note a reference, to be looked up later."""
        self._noted.append((to, name, place))

    def missing(self, root: Node) -> Iterator[Finding]:
        """Yield a finding for each reference to a name that is not in the file."""
        sections = section_names(root)
        for to, name, place in self._noted:
            names = [known for section in to.sections for known in sections.get(section, ())]
            if name not in names:
                hint = nearest(name, names)
                if to.address and (":" in name or not names):
                    hint = f"; an address is written {to.address.words}"
                yield error(place, f'no {to.what} "{name[:64]}"{hint}')


def section_names(root: Node) -> dict[str, list[str]]:
    """Return the names in each section, from the nodes: an entry with an error can still be referred to."""
    pairs = root.value if isinstance(root, MappingNode) else []
    return {
        section.value: [key.value for key, _ in body.value if isinstance(key, ScalarNode)]
        for section, body in pairs
        if isinstance(section, ScalarNode) and isinstance(body, MappingNode)
    }
