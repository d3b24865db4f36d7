"""The application's socket on a bus."""
