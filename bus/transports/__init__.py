"""The links of a bus: TCP, IPC, and what NNG carries for us."""
