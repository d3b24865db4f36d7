"""The syndication broker's part in buses: `rules` say what frames mean.

An `intake` makes publications of frames by `codecs`, an `outlet` frames of publications. `seats` are the
places of the broker on its buses.
"""
