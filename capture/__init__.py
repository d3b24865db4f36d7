"""Captures: their rows and files, how they are read back, and pcapng (docs/capture.md). Needs no Spark."""
