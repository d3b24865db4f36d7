"""Nodes of DBP in a program: services that register with a catalog, and clients (docs/dbp.md).

Without I/O: `registering` is the conversation of a service with its catalog, `listing` reads what a catalog
lists, `requests` has the messages between client and service. At the edge: `line` connects a service to its
catalog, `presence` keeps it listed there, and `calls` answers requests; `asking` connects a client to one
node. A program uses `service` and `client`; `watching` reads the liveness of services and the messages at
their sockets.
"""
