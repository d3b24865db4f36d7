"""Metadata of producers survive a restart of the syndication broker.

A `memory` ends with age, and survives restarts: a `store` writes to a `database` in the thread of a `worker`.
"""
