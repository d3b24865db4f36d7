"""The links of a bus: TCP and IPC on our own streams, and what NNG carries for us.

`links.make_link` makes the link for a URL. `tcp` has the stream links, whose pipes (`stream`) take any
`framing`; `sockets` binds, tunes and accepts. `nng` is imported only where it is used.
"""
