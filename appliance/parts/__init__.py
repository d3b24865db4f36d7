"""The parts that a gateway runs: each opens, closes, and changes while it runs, link by link.

`build` makes them from their records. `bus` and `bridge` join links into one, those of a bridge each by a
`side`; `broker` serves them, and `candidate` is what a bridge sends to brokers. Of the devices, whose base
is in `device`, `tap` looks into buses and bridges (`described` for its captures), and `service` is a peer of
buses; `kinds` is the table of both. All derive from what is in `site`; `changes` finds the links that come,
go and stay, `announcing` says on the LAN where they are, and `patch` joins a bridge to a bus of the same
process. `greeting` gives last values to newcomers, `reading` keeps what devices say for the status, and
`publisher` publishes what the gateway says itself.
"""
