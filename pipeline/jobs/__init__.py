"""The jobs on captures, a module each."""
