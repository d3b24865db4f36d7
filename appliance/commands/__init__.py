"""The commands, a module each: `arguments(parser)` and `run(options)`."""
