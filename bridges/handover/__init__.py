"""Failover of one bridge.

The `gate` stands in front of the bridge, a `window` is what a standby has heard, and `stamps` are those that
all candidates put on alike.
"""
