"""Sockets of ZeroMQ on an asyncio loop, for the nodes of DBP: ZMTP 3.0 on the streams of `bus.serving`.

`sockets` has the socket, `limits` its bounds. Below it: `zmtp` reads and writes the stream, `patterns`
choose the peers of each message, `dialing` connects. docs/decisions.md says why libzmq is not used.
"""
