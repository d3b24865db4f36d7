"""Frames, patterns, envelopes, batches and SP framing: bytes in, values out, no I/O."""
