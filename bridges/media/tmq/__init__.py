"""The TMQ network as a medium: a client of its brokers publishes what leaves the bridge, and subscribes.

docs/tmq-side.md says what crosses, and how types and patterns change.
"""
