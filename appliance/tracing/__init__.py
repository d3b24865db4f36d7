"""A trace of one marked frame through the gateways that run on this machine, for `explain --live`.

Each process watches for the mark: `sight` is one arrival of the frame at a part, by the ledgers there, and
`watch` all of them. `tracer` does so for whoever asks the `responder`; one process also sends the frame, as
if it had come in by one of its links. `client` asks all processes, and `shown` makes text of what they saw.
`words` is what crosses the local sockets.
"""
