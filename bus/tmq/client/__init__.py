"""A client of the TMQ system: `Client` is the face on asyncio; the classic face uses `ClientNode`, too.

Inside: `uplink` finds a broker and registers there, `inbox` holds received messages, and `callers` tells
which patterns mates publish.
"""

from bus.tmq.client.client import Client, Names, pattern_of
from bus.tmq.client.inbox import Inbox, Item
from bus.tmq.client.node import ClientNode

__all__ = ["Client", "ClientNode", "Inbox", "Item", "Names", "pattern_of"]
