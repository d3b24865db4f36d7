"""What a capture holds and how it is read back (docs/capture.md). Nothing here needs Spark."""
