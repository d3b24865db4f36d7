"""A client of the TMQ system: `Client` is the face on asyncio; the classic face stands on `Node`, too.

Inside: `uplink` finds a broker and registers there, `inbox` holds what was received, and `callers` tells what
mates publish.
"""

from bus.tmq.client.client import Client, Names, pattern_of
from bus.tmq.client.inbox import Inbox, Item
from bus.tmq.client.node import Node

__all__ = ["Client", "Inbox", "Item", "Names", "Node", "pattern_of"]
