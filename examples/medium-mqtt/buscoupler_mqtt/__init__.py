"""An MQTT 5 broker as a medium of buscoupler.

`medium` is the record and `topics` translates between topics and patterns: both are pure. `link` keeps the
connection up, `session` is one connection, and `pipe` is the broker as a peer of the hub. Messages to the
broker wait in an `outbox`: in `memory`, or `spooled`, in the files of a `spool` (`earlier`: as they were).
`flight` has the published messages that the broker has not acknowledged.
"""
