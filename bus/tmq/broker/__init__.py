"""A broker of the TMQ system: who subscribes, who publishes, and the service around it."""
