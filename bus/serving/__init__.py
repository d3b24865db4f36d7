"""The parts that every service needs to listen on TCP for foreign clients, whatever its protocol is.

`limits` has the bounds. A `listener` accepts within them; a `connection` carries whole objects in and bytes
out, whoever made it; `objects` cuts its stream. `rejections` counts and logs what was refused. A `quota`
bounds what clients register, and an `allowance` how fast; `turns` divide long work. A protocol adds how its
stream is cut, what an object means, when the handshake is complete, and its sign of life
(docs/add-a-device.md).
"""
