"""The links of a bus.

`links` makes one for a URL. `tcp` listens and dials at every address but those of inproc; a `channel` says
what lies between its sockets and its messages there: `secure` is TLS, `websocket` the framing of ws and
wss. Its peers are a `stream` each, with a `framing`, a `backlog` of what waits, and `gathering` under load;
`sockets` accepts and connects, `seats` says how many may stay, `peers` who may. `nng` has inproc, on
`nng_socket`; `options` are those of a link.
"""
