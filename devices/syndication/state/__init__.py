"""The state of a syndication broker, without I/O. Much work is done in `steps`.

`book` says who is told what. `producers` remembers metadata. `standing` has the set of each query, and the
producers in it. `selections` have the different values of a key in such a set. `sets` makes and changes both.
"""
