"""CAN messages as a database describes them: DBC, KCD or SYM.

`protocol` has the record. `database` reads a file with cantools into the records of `layout`, and finds
`overlaps` in them. A DBC is before that `mended`: what is wrong in its `entries`, `frames` and `attributes`
is left out, with a line; `kcd` and `sym` do so for these forms. `compiled` makes a table of bit operations
of a message; `values` turns raw numbers into values and back. `columns` reads many frames at once, for the
pipeline: `series` of signals.

`translator` has two halves. `inward` finds the message of a frame (`index`), whose signals a `station`
publishes with `writers`. `outward` gives values to the `outlet` of a message that is sent, with counters and
checksums of `fills`. `checks` finds what is wrong between a topology and its database, and `wanted` why a
message cannot be sent; `plausible` makes frames for tests. `j1939` has identifiers, transport and address
claims of that standard.
"""
