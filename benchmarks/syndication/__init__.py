"""The syndication broker: `rig` has the processes, and `brokers` the yardsticks beside it.

`load.c` is its clients; `store` measures its database.
"""
