"""A CAN bus as a link: SocketCAN, a multicast group, or any interface of python-can (docs/wire/can.md).

`medium` is the record. A `link` opens a `port` and makes a `pipe` on it. The pipe uses `receive`, and of
two senders over `outbound` the `direct` one, or the `threaded` one if the driver may block; `shared` has
the state that these have in common. A `voice` turns messages into frames, and back: `transfers` that of
TMQ, whose `codec` splits messages and joins them, and `subjects` has the patterns with subjects of their
own, `spoken` that of a protocol. A `port` is one of two kinds: on an `own_socket`, or of `python_can`.
`raw` opens SocketCAN and `group` a multicast group, both on the former; `interfaces` says why one of this
machine cannot be used. `socketcan` packs frames as the kernel does; `many` reads many at once, `inbox` each
by itself, and `outbox` writes many. `pace` says when a busy bus is read, and `beats` reads all such buses
by one timer. `flight` has the frames in the driver, and `window` bounds them. `state` tracks the
controller's states. `restart` ends a bus-off. `source` watches what python-can reads from, `echo` takes out
what we sent; `slcan` makes serial adapters fast, `socketcand` connects within bounds. `library` loads
python-can for all other interfaces, and `opening` bounds what they write. `listening` looks whether a
controller acknowledges. `clock` has the times at which frames came. `strangers` tells what others say on a
bus of TMQ, and `heartbeat` tells them that our node lives. `adapters` knows the interfaces that there are,
and their bit rates.
"""
