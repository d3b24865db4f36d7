"""A UDP multicast group as a link (docs/wire/multicast.md).

`medium` is the record. A `link` opens `sockets` on one of the `interfaces` and makes a `pipe`, which
`send`s, or sheds by policy (`shed`). `datagram` and `fragments` are the format, `rtnetlink` tells of
interfaces.
"""
