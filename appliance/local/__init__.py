"""Local sockets, by which commands find the running processes of this machine and ask them.

`places` knows the directories and the names of the sockets, `door` is the end in the running process, and
`asking` the other one. `lines` reads what crosses.
"""
