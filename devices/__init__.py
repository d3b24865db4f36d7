"""Devices sit on a bus and serve it: `raw`, the raw device, and `tap`, which records a bus."""
