"""The status of running processes: each answers on a local socket with one JSON document.

`snapshot` makes the document, `door` answers with it, `client` asks, and `shape` is what an answer must have;
`schema` makes the published JSON Schema from that. `remote` asks over the network. `rates` and `transit` are
sampled for it, and `neighbours` says which other gateways are silent. `marks` says what a picture of the
topology shows of it. For `top`, `page` makes text of it, and `silent` says which gateways do not answer.
"""
