"""`explain`: where one frame would go through a topology, or goes through gateways that run.

`rehearsal` sends a frame through the parts of all gateways with nothing opened. With `--live`, each process
that runs watches for a frame with a mark: `arrival` follows one arrival at a part by the ledgers there, and
`watch` all of them. `tracer` does so for whoever asks at the `responder`; one process also sends the frame,
as if it had come in by one of its links. `client` asks all processes, and `words` is what crosses the local
sockets. Both give a `hop` for each part that the frame comes to, and `printer` makes text and JSON of them.
"""
