"""A UDP multicast group as a link (docs/wire/multicast.md).

`medium` is the record. A `link` opens `sockets` on one of the `interfaces` and makes a `pipe`. The pipe
queues in the outbox of `send`, or in that of `shed` if a shed policy is set. `datagram` and `fragments` are
the format.
"""
