"""One immutable record for each part of a gateway, with all that it needs of a topology.

`resolve` makes all of them, once for a start or a reload, which compares them. `buses`, `bridges` and
`brokers` have the records of these parts, and `alarms` those of alarms; `policies` has the rules of sides,
`ranks` finds who sends first on a shared wire, and `files` the state of files with keys and certificates;
`bare` leaves these out of records. `ground` is what all of them are worked out from.
"""
