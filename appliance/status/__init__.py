"""The status of running processes: each answers on a local socket with one JSON document.

`snapshot` makes the document, `door` answers with it, `client` asks, and `shape` is what an answer must have.
For `top`, `page` makes text of it, and `silent` says which gateways do not answer.
"""
