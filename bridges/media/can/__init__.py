"""A CAN bus as a link: any python-can interface, and SocketCAN's own socket (docs/wire/can.md).

`medium` is the record. A `link` makes a `pipe` on a `port`, which `receive`s and `send`s frames; `shared`
is what these have in common. `codec` has transfers, `socketcan` frames in memory, `state` the
controller's states, `netlink` the request with which `restart` ends a bus-off, `slcan` one kind of
adapter.
"""
