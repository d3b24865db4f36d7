"""The facts about a capture that several analyses need.

`frames` are conditions on rows, `chosen` rows are the first of their groups, `small` tables are made of
values; `inventory` says what is in a capture, `places` where, `courses` what recorders told of it and when,
and `trunks` which buses are one segment. `sides` are what stands before bridges, and `naming` gives each
frame one name behind them. A frame's rows become one of the `sums`, by what `filters` make of its tokens;
from them `expected` learns where frames should arrive. `hops` are the times of frames, `clocks` those of
gateways, `steps` where those stepped, `restarts` when they were others then, `drifts` how they drifted, and
`wire_drifts` how they did, as exactly as wires tell it.
`holes` are times without rows, `events` what candidates told, `service` the rules of pauses.
"""
