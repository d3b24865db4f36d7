"""The buses of a syndication broker: frames become publications, and publications become frames.

`rules` are what a topology says of it. An `intake` makes publications of frames by `codecs`, and a
`publisher` makes frames of publications. A `bus_adapter` joins one bus to the broker's exchange.
"""
