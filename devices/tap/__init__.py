"""The tap copies what a hub moves into a capture, by a process of its own (docs/capture.md).

In the gateway: the `recorder` copies batches into the `ring` and starts the `process`; its `watch` over a
hub knows where each batch comes from, and by `ledger` the counts of links; `writer_backoff` lets a busy
data path alone, `names` go to the writer. In the other process: the `writer` turns records into `rows`,
writes the `journal`; its `finisher` makes files of closed ones (`finish`) and deletes those that `retention`
chooses. `device` is the record: settings and facts.
"""
