"""The program: a gateway's parts, composed from a topology, and the commands.

`cli` is the command line with the `parsing` of its words, `commands` has a module for each command, `probe`
what those for test traffic share, `demo` the demo. `log` is what they log, `streams` their standard streams,
and `interrupts` the signals that end them. `compose` builds and changes the `parts`; `serve` runs them,
and `alone` a service without a topology.
`reload` applies a changed file and `status` tells what runs, both at `local` sockets,
and `web` over HTTP. `monitor` makes events,
`ledger` prints counts, `trial` the outcome of a test run, `notify` tells the service manager, and `names`
finds those of tokens. `here` finds what this `machine` lacks to run them, `plugged` what is plugged into it,
and `service` makes services of systemd. `rehearsal` sends a frame through parts that are not open, and
`tracing` one through gateways that run.
`table` has all commands; `completion` makes scripts for shells of them, `manual` the man pages, and `page`
the page of all commands.
`layers` is for Scapy.
"""
