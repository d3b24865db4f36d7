"""Bridges translate TMQ frames between media, with policies, and stand in for each other.

A `bridge` has sides; `side` is one with its ports, `inside` what they share, and a `policy` the rules of a
side. `admission` judges what enters, in `ingress`; `forms` are those of a batch inside a bridge, and cut
what leaves. `runs` does so for many equal frames at once, by the `rules` of patterns; a `judge` knows what
no pattern says. `front` renames and thins out what crosses a side. `holdoff` waits on a shared trunk.
`guard` lets in the peers that an address of a bus lists, with their `permits`. `announcing` says on trunks
how a gateway is. `handover` has failover,
`durable` trunks that lose nothing, `media` a folder for each medium, `protocols` what their devices speak,
in the terms of `items` (many CAN frames: `packed`), and `simulate` all media in virtual time.
"""
