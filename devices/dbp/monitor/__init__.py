"""The monitor of DBP: copies of the messages at a node's sockets, and the liveness of services.

`mirror` publishes the copies on a port of its own while a client asks for them; `wire` has the frames. The
client is `devices.dbp.nodes.watching`.
"""
