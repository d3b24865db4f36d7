"""The status of running processes: each answers on a local socket with one JSON document.

`snapshot` makes the document, `server` answers with it, `places` finds the sockets on this machine and asks,
and `shape` is what an answer must have.
For `top`, `page` makes text of it, and `silent` says which gateways do not answer.
"""
