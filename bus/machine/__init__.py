"""The machine below: its files, threads, addresses and ports, and bounds of waiting for them.

`files` reads text that users wrote, `inputs` opens what they name as input, and `permissions` are those
of files; `partial` names what takes their place, and `scratch` makes temporary directories. `aside` does
in a thread what may block, which `touch` notes, and `openings` take turns there. `addresses` knows our
own, `groups` keeps those of others away, `holders` finds who has a port or a device, `wake_hook` notices
when a process stood still, `stops` tells whether it was late or stopped, and `real_time` gives the event
loop its turn at once. `late` puts off OpenSSL, and `digest` does without it. `lasting` says when a
certificate is valid, and `programs` whether one can be run; `parents` lets children end with theirs.
`of_loop` has what a loop shares, and `hosts` take turns in it. With `busy_poll` it looks for events
before it sleeps; `quotas` are what control groups allow.
"""
