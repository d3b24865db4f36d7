"""Reading of a topology file into a `Topology`: the text of a file, and what is made of it."""

import os
import types
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bus.machine.digest import sha256_of
from bus.machine.files import NoText, text_of
from bus.machine.inputs import opened
from bus.machine.touch import touching
from bus.schema import Where
from topologies.findings import Finding, InvalidTopology, error
from topologies.loading.document import CHARACTERS_MAX, parse
from topologies.loading.reader import Reader
from topologies.loading.references import section_names
from topologies.model import Topology

STDIN = "<standard input>"
_BYTES_MAX = 4 * CHARACTERS_MAX + 1


class Loaded(NamedTuple):
    """A topology, and a note for each variable in it."""

    topology: Topology
    notes: tuple[Finding, ...]


def load(path: str | Path) -> Topology:
    """Read the topology in a file, or in standard input if `path` is `-`.

    Its variables are those of the environment. Raises `InvalidTopology` (a `TopologyError`) with all
    findings.
    """
    return load_noted(path).topology


def load_noted(path: str | Path) -> Loaded:
    """Read a topology as `load` does, and return it with notes about its variables."""
    name = STDIN if str(path) == "-" else str(path)
    try:
        data = _data(name)
        text = text_of(data)
    except OSError as e:
        raise InvalidTopology([error(Where(name), f"cannot read: {e.strerror}")]) from None
    except NoText as e:
        raise InvalidTopology([error(Where(name, e.line, 1), str(e))]) from None
    found = _read(text, name, os.environ)
    digest = sha256_of(data)  # of the file, as a roll-out has it: variables differ by gateway
    return found._replace(topology=replace(found.topology, digest=digest))


def _data(name: str) -> bytes:
    """Return what a file or standard input has, up to a bound. Raises `OSError`.

    A pipe may take its time; a file that does not answer is noted (`bus.machine.touch`).
    """
    if name == STDIN:
        with open(0, "rb", closefd=False) as source:
            return source.read(_BYTES_MAX)
    with touching(name):
        is_file = Path(name).is_file()
        if is_file:
            return _read_from(name)
    return _read_from(name)


def _read_from(name: str) -> bytes:
    with opened(name) as source:
        return source.read(_BYTES_MAX)


def loads(
    text: str, name: str = "<text>", variables: Mapping[str, str] = types.MappingProxyType({})
) -> Topology:
    """Read the topology in a text; `name` is the file name in findings. Raises as `load` does."""
    return _read(text, name, variables).topology


def _read(text: str, name: str, variables: Mapping[str, str]) -> Loaded:
    root, faults, notes, unknown = parse(text, name, variables)
    if root is None:
        raise InvalidTopology(faults)
    findings = list[Finding]()
    reader = Reader(name, findings, section_names(root).get("gateways", ()))
    topology = reader.read(root, Topology, "")
    findings += reader.references.missing(root)
    findings = [finding for finding in findings if (finding.line, finding.column) not in unknown]
    if faults or findings or not isinstance(topology, Topology):
        raise InvalidTopology([*faults, *findings])
    return Loaded(topology, notes)
