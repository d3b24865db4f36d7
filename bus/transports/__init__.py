"""The links of a bus.

`links` makes one for a URL. `tcp` listens and dials over TCP and IPC; its peers are a `stream` each, with
a `framing`, a `backlog` of what waits, and `gathering` under load; `sockets` accepts and connects. `nng`
has the transports of NNG, on its `nng_socket`; `options` are those of a link.
"""
