"""Durable trunks: two appliances that lose nothing over an outage (docs/wire/durable.md).

`settings` is the record in a topology. `wire` has the messages. `sender` and `receiver` decide, without I/O,
what to send, to take and to acknowledge; `pace` says how much of the link the backlog may take, `sifting`
what is kept, `classes` what goes first and `ages` what is too old. `house` keeps the journal of a bus in the
thread of a `worker`, by the calls of `work`: `intake` is what waits for it, and `catching_up` reads backlogs.
`keys` are those in envelopes, `replays` the frames that a failover pair kept twice. An `end` is its pipe to
one other appliance, which counts what it gets `live`, and `door` is the hub that a link of a trunk opens on,
with a `connection` for each peer. `shown` is what a status says of all this, by `looks`, with the `decline`
of each backlog, and `emptying` sends what a dead gateway has left.
"""
