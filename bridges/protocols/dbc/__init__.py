"""CAN messages as a database describes them: DBC, KCD or SYM.

`protocol` has the record, and `translator` does the work. `database` reads a file with cantools into the
records of `layout`. `compiled` makes a table of bit operations of a message; `values` turns raw numbers into
values and back; `station` publishes the signals of a message, and `outlet` makes the frames of a message
that is sent, with the counters and checksums of `fills`. `checks` finds what is wrong, and `j1939` has
identifiers, transport and address claims of that standard.
"""
