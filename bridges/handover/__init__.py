"""Failover of one bridge: the `gate` in front of it, a standby's `window`, and `stamps` that all
candidates put on alike.
"""
