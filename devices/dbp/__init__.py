"""DBP (docs/dbp.md), a protocol by which services and their clients find each other on a LAN.

`catalog` lists the services. `nodes` has services and clients for programs. `monitor` reports which nodes
live and what they send. `proxy` joins the catalogs of two sites. `beacon` announces on the LAN where
catalogs, buses and brokers are. `zeromq` has the sockets, `ports` their default ports, `times` the format of
times.
"""
