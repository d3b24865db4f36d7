"""The raw bus: its wire formats, the hub, transports, the application's socket, TMQ and its leases."""
