"""The application's `socket` on a bus, and how it waits (`waiting`)."""
