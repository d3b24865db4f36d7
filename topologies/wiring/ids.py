"""The ids of parts, gateways and links in the picture of a topology. Other parts do not change them. Pure."""


def bridge_id(bridge: str, gateway: str) -> str:
    """Return the id of a gateway's copy of a bridge; a side of it has `/NUMBER` behind that."""
    return f"bridge {bridge}@{gateway}"


def gateway_id(gateway: str) -> str:
    """Return the id of a gateway's box."""
    return f"gateway {gateway}"


def link_id(one: str, other: str) -> str:
    """Return the id of the line between two nodes, of which `one` dials, or is the device."""
    return f"{one} -> {other}"


def link_between(one: str, other: str) -> str:
    """Return the id of the line between two buses, whichever of them dials."""
    return link_id(*sorted((one, other)))
