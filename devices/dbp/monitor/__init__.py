"""Looks into what nodes say to each other: copies of what passes at a socket, and who lives.

`mirror` gives copies on a port of its own as long as somebody asks; `wire` has the frames. The client of both
is `devices.dbp.nodes.watching`.
"""
