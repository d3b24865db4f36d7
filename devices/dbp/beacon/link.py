"""A link that dials a bus by the name in its beacon: `beacon://SYSTEM/BUS`."""

import errno
import socket
from asyncio import AbstractEventLoop
from typing import Any

from bus.errors import LinkError
from bus.transports.dialling import DialLink
from bus.transports.sockets import connect_to
from bus.urls import split_url
from devices.dbp.beacon.finding import Found, first

HEARD_S = 5.0  # the wait for a beacon, before an attempt fails


def beacon_link(url: str, **options: Any) -> DialLink:
    """Return a link to the trunk that `url` names, not yet open. `options` are those of `DialLink`.

    The link listens for the beacon before each connection, so the bus may move. An error of a beacon that is
    not heard is a fault of the link: nothing is raised here.
    """
    name = split_url(url).path

    def matches(found: Found) -> bool:
        beacon = found.beacon
        return (beacon.kind, beacon.transport, beacon.name) == ("trunk", "tcp", name)

    async def connect(loop: AbstractEventLoop) -> socket.socket:
        try:
            found = await first(matches, HEARD_S)
        except TimeoutError:
            raise OSError(errno.EHOSTUNREACH, f"no beacon of a trunk {name} was heard") from None
        except LinkError as error:
            raise OSError(errno.EADDRINUSE, str(error)) from None
        return await connect_to(loop, socket.AF_INET, (found.host, found.beacon.port))

    return DialLink(url, connect=connect, **options)
