"""A peer over UDP, or all at a broadcast address: `medium` has the record, `link` opens the socket.

`pipe` sends and receives datagrams through a translator; `datagram` has that of TMQ.
"""
