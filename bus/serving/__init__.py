"""The parts that every service needs to listen on TCP for foreign clients, whatever its protocol is.

`limits` has the bounds: of connections, of what a peer asks for, of what clients register. A `listener`
accepts within them; a `connection` carries whole objects in and bytes out; `objects` cuts its stream.
`rejections` counts and logs what was refused; `turns` divide long work. `streams` listens for services that
need no more than streams of asyncio, and `lasting` has those read to their end. A protocol adds how its
stream is cut, what an object means, when the handshake is complete, its sign of life, and how it answers whom
it refuses (docs/add-a-device.md).
"""
