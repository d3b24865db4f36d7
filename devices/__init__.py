"""What sits on a bus and serves it: the raw device, and the tap that records it."""
