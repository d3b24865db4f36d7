"""A broker of the TMQ system: `Broker` is all of it.

Inside: `registry` (pure) remembers who subscribes and publishes, `sharing` tells other brokers, `outgoing`
sends to clients that are not connected, `probing` asks whether they live, `service` is the broker itself.
"""

from bus.tmq.broker.service import Broker

__all__ = ["Broker"]
