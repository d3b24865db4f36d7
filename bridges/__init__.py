"""Bridges translate TMQ frames between media, with policies, and stand in for each other.

`bridge` has sides and ports. What enters is judged by `admission`, in `ingress`; what leaves is cut in
`egress`; between trunks it is `enveloped`. `runs` does so for many equal frames at once, by the `rules` of
patterns. `holdoff` waits on a shared trunk. `guard` lets in the peers that an address of a bus lists, with
their `permits`. `handover` has failover, `media` a folder for each medium, `simulate` all media in virtual
time.
"""
