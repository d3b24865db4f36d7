"""The tap: copies what a hub moves into a capture, in a process of its own (docs/capture.md)."""
