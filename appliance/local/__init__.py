"""Local sockets, by which commands find the running processes of this machine and ask them.

`places` knows the directories and the names of the sockets, `responder` is the end in the running process,
and `asking` the end of the command. `lines` reads the lines of JSON between them.
"""
