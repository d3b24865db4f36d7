"""The links of a bus.

`links` makes one for a URL: of `listening` or `dialling`, over a `stream_link`, at every address but those of
inproc; a `channel` says what lies between its sockets and its messages there: `secure` is TLS, `websocket`
the framing of ws and wss, `signing` that of a trunk with keys. A peer comes in by an `entrance`, and is a
`stream`, with a `framing`, a `backlog` of what waits, its turns of `reading`, and `gathering` under load; all
read into one `scratch` buffer. The `budget` bounds what all of them hold. `sockets` accepts and connects,
`redialling` does so again and again, `binding` waits for an address that is not there yet, `seats` says how
many may stay, `refusals` tells the others why, `peers` says which may join, `chores` when costly work is done
for them, and `portion` how much one read may bring. Datagrams that many may send wait in an `intake`, and its
`inlet` keeps those of whoever says too much out, as `muting` judges. What is still `on_the_way` at a close
comes yet, by `parting`. `nng` has inproc, on `nng_socket`; `options` are those of a link.
"""
