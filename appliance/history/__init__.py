"""The curves of a gateway: what it counted in the last 15 minutes and the last day, in bounded rings.

`rings` keeps them, `samples` says what is sampled of a gateway once a second, and `recording` does it.
"""
