"""Side-by-side comparison of raw bus devices on one load generator: `python -m benchmarks`."""
