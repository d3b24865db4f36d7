"""The records of a topology file: a frozen dataclass for each kind of mapping in it.

Their annotations are the schema (ARCHITECTURE.md), which the loader, the checker and the reference page use.
Patterns stay as written, text or numbers; `bus.wire.pattern.Pattern(*names)` makes tokens from them.
`topology` has the whole file and its gateways, `status` their pages, `buses` the buses and brokers,
`addresses` where these listen and what they dial, `bridges` the bridges with their sides, and `alarms` the
alarms with their outlets.
"""

from topologies.model.addresses import Address, BrokerAddress, Dial, Listen
from topologies.model.bridges import BridgeSpec, Filter, Rate, Shed, Side
from topologies.model.buses import BrokerSpec, BusSpec, Trunk
from topologies.model.status import PLAIN, StatusSpec
from topologies.model.topology import (
    Candidate,
    Gateway,
    NamesSpec,
    S,
    Spec,
    Topology,
    candidates_of,
    gateway_here,
    gateway_named,
    gateways_of,
    running,
)

__all__ = [
    "PLAIN",
    "Address",
    "BridgeSpec",
    "BrokerAddress",
    "BrokerSpec",
    "BusSpec",
    "Candidate",
    "Dial",
    "Filter",
    "Gateway",
    "Listen",
    "NamesSpec",
    "Rate",
    "S",
    "Shed",
    "Side",
    "Spec",
    "StatusSpec",
    "Topology",
    "Trunk",
    "candidates_of",
    "gateway_here",
    "gateway_named",
    "gateways_of",
    "running",
]
