"""The ports of DBP (docs/dbp.md). Pure. They are defaults: a port that is taken makes its socket count up."""

from typing import Final

BEACON: Final = 5245
"""UDP."""
CATALOG: Final = 5246
BUS: Final = 5247
"""The first port of the sockets of nodes: services, and what they publish."""
MONITOR: Final = 5248
PROXY: Final = 5249
ANNOUNCED: Final = 5250
"""UDP, for beacons of the second form: the original takes any beacon on 5245 for that of a catalog."""

TRIES: Final = 64
"""Ports that are tried one after the other, the first included, where nobody named a port."""
