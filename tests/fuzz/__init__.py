"""Fuzzing of every parser: one table of targets, from which `make fuzz`, tests and page derive."""
