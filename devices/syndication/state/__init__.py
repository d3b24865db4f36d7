"""The state of a syndication broker, without I/O. Much work is done in steps.

`book` decides which clients get which messages. `producers` remembers metadata. `queries` has the standing
queries, each with the set of producers that match; `selections` have the different values of a key in such a
set. `sets` makes and changes both.
"""
