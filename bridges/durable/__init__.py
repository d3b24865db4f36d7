"""Durable trunks: two appliances that lose nothing over an outage (docs/wire/durable.md).

`settings` is the record in a topology. `wire` has the messages. `sender` and `receiver` decide, without I/O,
what to send, to take and to acknowledge; `pace` says how much of the link the backlog may take, and `sifting`
what is kept. `house` keeps the journal of a bus in a thread, by the calls of `work`; an `end` is its pipe to
one other appliance, and `door` is the hub that a link of a trunk opens on, with a `connection` for each peer.
`shown` is what a status says of all this, with the `decline` of each backlog, and `emptying`
sends what a dead gateway has left.
"""
