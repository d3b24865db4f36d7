"""A command as a process of the system: its standard streams, its signals, its event loop, its manager.

`streams` prepares the standard streams, and `interrupts` turns signals into exits. `running` has the event
loop of all commands; in it `serve` runs services until a signal, and `notify` tells the service manager of
it.
"""
