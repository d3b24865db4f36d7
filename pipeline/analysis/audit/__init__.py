"""The audit: did every frame reach every other segment exactly once, and its own not at all?

`findings` makes its tables, and `verdict` sums them up. `suspects` are frames that did not arrive as they
should; with them come `pieces` of all others. `moved` are clocks. `judgement` judges: a `few` by columns
(`sights`, in `orders`) with `marks`, many by plans. `episodes` are equal frames that are told apart by time,
`failover_copies` what candidates send again. `replays` are frames that a standby sent at a takeover.
`causes` finds what else was the matter: `ways` over bridges, gateways that are `dark` or `absent` and
holes, `silent` bridges and `gaps` of segments, which are spells of `quiet`, and filters that changed
(`filtered`). `due` is what topologies let pass. `explain` says what counts mean, and `labels` has the
final name of a fault. `translated` compares sides with a protocol by counts, with the words of
`comparison`, and `thinned` what sides refused; findings that ledgers explain are `excused`. `uncovered`
is what was not looked at, with the words of `coverage`.
"""
