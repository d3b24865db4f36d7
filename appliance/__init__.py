"""The program: a gateway's parts, composed from a topology, and the commands."""
