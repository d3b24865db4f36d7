"""A broker of the TMQ system: `Broker` is its face.

Inside: `registry` (pure) remembers subscribers and publishers, `sharing` tells other brokers, `outgoing`
sends to clients that are not connected, `presence` (pure) knows which those are, `probing` asks whether they
are alive, `service` is the broker itself.
"""

from bus.tmq.broker.service import Broker

__all__ = ["Broker"]
