"""The watch for loops of plain links.

`watched` is a hub that has one. `loops` names a suspect, `trials` examines it (`cases` and `held` at the
hub), `canaries` prove a ring, and `rings` says what is cut, and for how long.
"""
