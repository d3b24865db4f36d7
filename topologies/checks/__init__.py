"""The checks of a topology: each module searches for one kind of fault and yields findings.

`checker` calls all of them: `cycles` (loops of frames; `rounds` are those of renamed ones), `returns` (loops
of devices), `exclusive` (what only one part can have), `addresses`, `failover`, `budgets` of media,
`messages` that cannot cross, `confined` wires, `foreign` classes that cannot be imported, `keys`,
`certificates` of gateways, `protocols`, `senders` on wires without sources, `subjects` of patterns,
`unrecorded` wires, journals of `durable` trunks, `idle` bridges and settings, `alarms`, and `doubles` of
values.
Beside these, `exposure` is about who is let in, `actors` about who can act on devices, and `needs` about what
a gateway needs of its machine.
"""
