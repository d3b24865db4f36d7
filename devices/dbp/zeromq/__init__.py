"""Sockets of ZeroMQ on an asyncio loop, for the nodes of DBP: ZMTP 3.0 on the streams of `bus.serving`.

`sockets` has the socket, `limits` its bounds. Under it: `zmtp` reads and writes the stream, `patterns` say
who gets what, `dialing` connects. Why libzmq is not used is in docs/decisions.md.
"""
