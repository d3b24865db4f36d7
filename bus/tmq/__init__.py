"""The TMQ system: publish and subscribe by pattern, on the wire protocol of the 2015 reference
(docs/tmq.md).

`from bus.tmq import *` is the classic face; `Client` is the same on asyncio.

`wire` has the packets, `address` reads what people write. A `greeter` listens, by `bus.serving`, and a
`peer` is an address to send to; `options` bounds them, and `unread` what a peer of 2015 is sent at a time.
`client` and `broker` are the two roles, `classic` the functions of 2015.
"""

from bus.tmq.classic import TMQ_BRIDGE, TMQ_BROKER, TMQ_CLIENT, Context, Socket
from bus.tmq.client import Client
from bus.tmq.options import Options
from bus.wire.frame import CACHE, PUB, REMOVE, SUB
from bus.wire.pattern import Pattern, check_tokens, token

TMQ_PUB, TMQ_SUB, TMQ_CACHE, TMQ_REMOVE = PUB, SUB, CACHE, REMOVE
pattern, tmq_hash = Pattern, token
tmq_init, tmq_term = Context, Context.close
tmq_socket, tmq_close = Socket, Socket.close
tmq_bind, tmq_broker = Socket.bind, Socket.use_brokers
tmq_subscribe, tmq_unsubscribe = Socket.subscribe, Socket.unsubscribe
tmq_publish, tmq_unpublish = Socket.publish, Socket.unpublish
tmq_refusal = Socket.refusal
tmq_send, tmq_recv, tmq_recv_from = Socket.send, Socket.recv, Socket.recv_from

__all__ = [
    "TMQ_BRIDGE",
    "TMQ_BROKER",
    "TMQ_CACHE",
    "TMQ_CLIENT",
    "TMQ_PUB",
    "TMQ_REMOVE",
    "TMQ_SUB",
    "Client",
    "Options",
    "check_tokens",
    "pattern",
    "tmq_bind",
    "tmq_broker",
    "tmq_close",
    "tmq_hash",
    "tmq_init",
    "tmq_publish",
    "tmq_recv",
    "tmq_recv_from",
    "tmq_refusal",
    "tmq_send",
    "tmq_socket",
    "tmq_subscribe",
    "tmq_term",
    "tmq_unpublish",
    "tmq_unsubscribe",
]
