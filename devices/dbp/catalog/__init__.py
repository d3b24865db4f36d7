"""The catalog: services register, and clients ask for their addresses (Hermes' Distributive Broker Protocol).

Without I/O (docs/wire/dbp.md): `bounds` limits what peers may cost. `body` reads and packs JSON; `wire` turns
multipart messages into commands and back. `entry` is the content of a registration. `life` judges silence,
`services` has the listed services, and `silenced` the peers to which nothing more is said. A `registry` joins
them: answers to peers, pings to services, and gone services; these are its `outcomes`.

At the edge: a `server` has the sockets and the clock, `datagrams` the heartbeats by UDP, `asks` the
connections to services, `records` the file. `service` is all of it for a gateway, `device` its settings.
"""
