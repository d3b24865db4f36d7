"""Files of the field, in and out, without Spark: logs of CAN adapters and tools, pcap and pcapng.

`table` has a record (`format`) for each, and finds the one of a file. A reader takes a `source` and yields
`capture.frames` or rows of ours; `imports` puts them into a directory, with `rows` of pcapng, and the `runs`
there say which is theirs. `exports` takes CAN frames out of a directory or file into another, the `target`,
and `losses` counts what that cannot hold.
`candump`, `asc`, `blf`, `trc`, `busmaster`, `mf4`, `mcap` and `pcap` are formats, and `commas` is CSV with
`heading`, `guesses` and `cells`; `mdf_blocks`, `mdf_records` and `mf4_writer` are parts of MF4, `packets` of
pcap, `console` and `looks` of candump. `columns` collects frames that come one at a time, `lines` reads them,
and `dates` the dates of heads. All but the records need numpy, so they are imported late.
"""
