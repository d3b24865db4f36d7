"""The rows that jobs work on: `read` from a capture, whose files are `sound` or left out, from pcapng by the
Spark data source (`source`), `live` as they are recorded, or made up as a `sample`; the `span` of them
that is asked for (`since` the last time), how `late` their files were, and the `names` of their tokens.
"""
