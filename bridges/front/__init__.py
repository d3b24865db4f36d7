"""The front of a side: what stands between its link and the bridge, where the file asks for it.

`settings` is what the file says. `rewriting` gives the frames of a batch other patterns inside the bridge
than on the wire (`bus.renaming`). `thinning` drops frames that say nothing new, or come too often,
and `wrapping` makes frames of opaque messages and back. `hub` puts all of it in front of the pipes of a link,
so that filters, shedding, failover and captures see the patterns of the bridge. A side without any of these
settings has no front, and pays nothing.
"""
