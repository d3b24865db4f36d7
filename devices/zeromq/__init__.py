"""ZeroMQ on an asyncio loop, for the nodes of DBP. The only package that imports pyzmq (the extra `dbp`).

`sockets` has the socket, `limits` its bounds.
"""
