"""Storage of the metadata of producers, which survive a restart of the syndication broker.

`memory` forgets producers with age and restores them after a restart. A `store` writes them to a `database`,
an SQLite file, in a thread of its own.
"""
