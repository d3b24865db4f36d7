"""Radios of IEEE 802.15.4 as a link, by the sockets of the kernel (docs/wire/ieee802154.md).

`medium` is the record. A `link` opens a `radio` on the interface that `card` finds, and makes a `pipe`,
which is that of multicast with the numbers of `numbering` on its datagrams.
"""
