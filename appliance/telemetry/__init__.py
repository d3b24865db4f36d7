"""Telemetry: traces of sampled messages and lines of the log, for a collector of OpenTelemetry.

`sampling` chooses messages by their envelopes and derives the ids of their traces, `otlp` has the JSON of
the protocol. The `sender` posts it from a thread of its own, `lines` hands it the log, and `part` is the
device of a topology, which follows sampled messages through bridges.
"""
