"""Metadata of producers survive a restart of the syndication broker.

A `memory` ends with age, and survives restarts: a `store` writes to a `database` in a `thread` of its own.
"""
