"""The status of running processes: each answers on a local socket with one JSON document.

`snapshot` makes the document from a `view` of the process, with the `rows` of its links, the `candidates`
for leases and the last `values`; `responder` answers with it; `turns` makes it while the loop turns.
`client` asks on this machine, `remote` over the network. `shape` is what readers rely on in a document, and
`schema` makes the published JSON Schema of it. `older` completes documents of older gateways. `rates` and
`transit` are sampled for the document, and `neighbours` tells which other gateways are silent. `labels` are
the names of links for people, and `sums` tell what crossed the plant's edges from what crossed inner joints.
`times` has the form of a time, that of the log. `overlay` is the live part of a picture. `terminal` makes
the text of `top`, and `silent` its lines about gateways that do not answer. `words` are shared by all that
show a row, `conditions` judges that of a link, and `health` is the verdict on a gateway.
At the end of a process, `ending` keeps who was connected, `ledger` prints the counts of each link, and
`trial` the outcome of `run --test`.
"""
