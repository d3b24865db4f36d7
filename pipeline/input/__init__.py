"""The rows that jobs work on: `read` from a capture, whose files are `sound` or left out, or `stored` in an
object store, from whose `buckets` Python reads them as `arrow` batches; from a file of the `field`; from
pcapng by the Spark data source (`source`), `live` as they are recorded, or made up as a `sample`. The `span`
of them is asked for (`since` the last time); how `late` their files were, what is `unread` as it is in no
file yet, the `summaries` of the others, and the `names` of their tokens.
"""
