"""A broker of the TMQ system: `Broker` is its face.

Inside: `places` are the addresses at which it listens, `registering` takes what clients and other brokers
register into the `registry` (pure), `sharing` tells other brokers, and `early` keeps what they say before
they are known. `clients` tells publishers who subscribes and removes the dead: `outgoing` sends to those that
are not connected, `presence` (pure) knows which those are, `probing` asks whether they are alive. `common`
has what all of these share. `service` is the broker itself.
"""

from bus.tmq.broker.common import ClientRules
from bus.tmq.broker.service import Broker

__all__ = ["Broker", "ClientRules"]
