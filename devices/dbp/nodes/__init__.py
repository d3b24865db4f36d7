"""Nodes of DBP in a program: services that register with a catalog, and clients (docs/dbp.md).

Without I/O: `registering` is the conversation of a service with its catalog, `listing` reads what a catalog
lists, `requests` are the messages between client and service. At the edge: `line` connects a service to its
catalog, `presence` keeps it listed there, `calls` answers requests, `service` and `client` are what a program
uses, and `watching` asks how services live and what passes at their sockets.
"""
