"""The program: a gateway's parts, composed from a topology, and the commands.

`commandline` reads the words of a command, and `commands` has a module for each. `process` is what every
command does as a process, `log` what it logs. `compose` builds and changes the `parts` of a gateway, with
what is `following` at a reload, and `alone` wraps a service that needs no topology. `reload` applies a
changed file, `rollout` brings one to gateways, `status` tells what runs, both at `local` sockets, and `web`
over HTTP; `version` says which program. `monitor` makes events of state changes, and of links that stay
down (`downs`); `rounds` look at what runs, in portions where that is much. `health` says whether the gateway
is well, `plant` whether all gateways are, `history` keeps the curves, and `alarms` tells people of what
should not be. `telemetry` sends traces and log lines to a collector; it and alarms use `posting`,
in the threads of an `outbox`, and `until` bounds what answers. `explain` sends a frame through parts that
are not open, or through gateways that run. `machine` finds what this machine lacks, `certificates` makes
and reads those of TLS, and `service` makes services of systemd. `top` is the screen of the command of that
name. `probe` sends and receives test traffic, and `demo` is the demo. `simulated` is a whole plant in
virtual time.
"""
