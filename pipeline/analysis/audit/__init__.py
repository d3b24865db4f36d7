"""The audit: did every frame reach every other segment exactly once, and its own not at all?

`findings` makes its tables, and `verdict` sums them up. `suspects` are frames that did not arrive as they
should, `episodes` equal frames that are told apart by time, `failover_copies` what candidates send again.
`causes` finds what else was the matter: `ways` over bridges, `absent` gateways and holes, `silent` bridges
and `gaps` of segments, which are spells of `quiet`. `explain` says what counts mean, and `labels` has the
final name of a fault.
"""
