"""A year of a watch: `files` makes the captures, `rig` runs the watch."""
