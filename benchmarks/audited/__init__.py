"""A check of the audit: what it says of takeovers is what listeners heard.

Each shipped topology runs as processes, with a recorder on each gateway, and the gateways are killed or
frozen in turn. `shipped` makes the files of a plant, `plant` runs its processes, `devices` what these need,
`outside` has who speaks and listens there, `truth` compares what these heard with what the audit says, and
`content` finds the frame that a finding is about.
"""
