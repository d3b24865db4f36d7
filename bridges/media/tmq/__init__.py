"""The TMQ network as a medium: a client of its brokers publishes what leaves the bridge, and subscribes.

`medium` is the record, `link` has the client, and `pipe` carries messages both ways: `declared` remembers the
patterns that the broker knows, an `outlet` is the queue to one subscriber, and `mates` hold copies for the
other gateways. docs/tmq.md says which messages cross, and how types and patterns change.
"""
