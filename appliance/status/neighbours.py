"""The other gateways of a topology, as a gateway sees them: by sockets here and claims at brokers."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from appliance.local.places import is_listening, runtime_directory
from appliance.status.client import status_sockets
from appliance.status.silent import HEARD_MS
from topologies.model import Topology

LOOK_S = 5.0


class Neighbours:
    """The watch on other gateways: looks for their sockets every few seconds at most.

    `directory` has a directory for each topology; by default that of this user.
    """

    def __init__(
        self, gateway: str, directory: Path | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gateway, self._directory, self._clock = gateway, directory, clock
        self._at_s = float("-inf")
        self._here = frozenset[str]()

    def silent(self, topology: Topology, claims: Mapping[str, int]) -> dict[str, str]:
        """Return why each gateway that is not known to live counts as silent, by its name.

        `claims` are the ages in ms of the last claims that brokers of this gateway heard, by gateway.
        """
        here = self._look(topology.name)
        others = [name for name in topology.gateways if name != self._gateway and name not in here]
        return {name: _cause(claims.get(name)) for name in others if claims.get(name, HEARD_MS) >= HEARD_MS}

    def _look(self, topology: str) -> frozenset[str]:
        """Return the gateways that have a process here that answers."""
        if self._clock() - self._at_s >= LOOK_S:
            self._at_s = self._clock()
            root = (self._directory or runtime_directory()) / topology
            self._here = frozenset(path.name for path in root.glob("*") if _answers(path))
        return self._here


def _answers(directory: Path) -> bool:
    return any(map(is_listening, status_sockets(directory)))


def _cause(heard_ms: int | None) -> str:
    if heard_ms is not None:
        return f"silent: a broker here heard its last claim {heard_ms // 1000} s ago"
    return "not seen from here: no process of it on this machine, and no claim at a broker here"
