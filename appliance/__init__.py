"""The program: composes a gateway's parts, and has the commands."""
