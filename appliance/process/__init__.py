"""Commands as processes of the system: how they start, wait, stop and report their end.

`streams` prepares the standard streams, and `interrupts` turns signals into exits. `serve` runs services in
one event loop until a signal, and `notify` tells the service manager of it. At the end, `ledger` prints the
counts of each link, and `trial` the outcome of `run --test`.
"""
