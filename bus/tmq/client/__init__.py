"""A client of the TMQ system, and how it finds its brokers."""
