"""Failover of one bridge.

The bridge has an `entrance`: a `gate`, which is open at one gateway, or one at which all forward in
`parallel`. A `window` is what a standby has heard: the frames (`heard`), by the rules of the `sides`, and the
`outcome` of earlier ones; that of `in_order` compares `streams` of many frames. `stamps` are those that all
candidates put on alike, and `copies` those of frames that another candidate sent first. `unanswered` are
commands to devices, heard without a result. What a gateway reads too late is `belated`, and what it heard
before it heard all sides is `doubted`.
What it sends at a takeover, and copies of that, are a `replay`.
"""
