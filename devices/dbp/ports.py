"""The default ports of DBP (docs/dbp.md): a socket whose port is taken tries the next ones. Pure."""

from typing import Final, TypeGuard

BEACON: Final = 5245
"""The port of beacons, of UDP."""
CATALOG: Final = 5246
BUS: Final = 5247
"""The first port of the ROUTER and PUB sockets of services."""
MONITOR: Final = 5248
PROXY: Final = 5249
ANNOUNCED: Final = 5250
"""UDP, for beacons of the second form: the original takes each beacon on 5245 for that of a catalog."""

TRIES: Final = 64
"""The number of ports that are tried, beginning with the default, if the user named none."""


def is_port(value: object) -> TypeGuard[int]:
    """Return whether a value from JSON is a port: an integer from 1 to 65535, and not `true`."""
    return type(value) is int and 0 < value < 1 << 16
