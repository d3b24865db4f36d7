"""The commands. Each module has `arguments(parser)` and `run(options)`, which returns the exit status."""
