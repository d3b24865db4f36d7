"""A client of the TMQ system: `Client` is the face on asyncio; the classic face stands on `ClientNode`, too.

Inside: `uplink` finds a broker and registers there, `inbox` holds what was received, and `callers` tells what
mates publish.
"""

from bus.tmq.client.client import Client, Names, pattern_of
from bus.tmq.client.inbox import Inbox, Item
from bus.tmq.client.node import ClientNode

__all__ = ["Client", "ClientNode", "Inbox", "Item", "Names", "pattern_of"]
