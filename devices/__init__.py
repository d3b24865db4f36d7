"""What sits on a bus and serves it: `raw`, the raw device, and `tap`, which records a bus."""
