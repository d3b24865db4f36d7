"""Captures: their rows and files, and how they are read back (docs/capture.md). Nothing here needs Spark.

`schema` has the columns, `messages` and `frames` fill them for many messages and CAN frames at once; `files`
the names and places of files, `names` those of tokens, `contents` the rows that summarise a file, `pcapng`
another form of the same rows; `reader` reads both. `formats` are files of the field, in and out. `parquet`
writes files, and `compact` merges them; `locks` keep them in place while they are read. `tables` put captures
together, in `stores`, by the `ranges` of rows that files have; `delta` keeps a Delta log of them, and
`logged` reads one.
`by_url` and `plainly` say to other libraries which store a URL means, and which directory a path. `journals`
are read before they are files, by their `batches`, and `live` reads both as they come. `layers` show packets
to Scapy, as `buscoupler.lua` does to Wireshark.
"""
