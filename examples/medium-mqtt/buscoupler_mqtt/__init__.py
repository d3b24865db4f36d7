"""An MQTT 5 broker as a medium of buscoupler.

`medium` is the record and `topics` translates between topics and patterns: both are pure. `link` keeps the
connection, `session` is one connection, and `pipe` is what the hub sees. What leaves waits in `memory`, or
with a spool in files (`spool`), which `spooled` reads and writes in a thread. `flight` counts what the broker
has not acknowledged.
"""
