"""Whether a gateway is ready, from its status. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any


def troubles(status: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each reason why a gateway is not ready: none if it is.

    It is ready if all its links to media and other buses are up, and it can take part in each failover.
    A standby is ready too: readiness says nothing about who forwards.
    """
    for part in status["parts"]:
        if part["state"] not in ("", "up"):
            yield f"{part['id']}: {part['state']}" + (f": {part['fault']}" if part["fault"] else "")
    for role in status["candidates"]:
        if not role["ready"]:
            yield f"bridge {role['bridge']}: not ready: {role['cause']}"
