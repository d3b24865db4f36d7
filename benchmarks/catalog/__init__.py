"""The catalog with a thousand services: `rig` has its processes."""
