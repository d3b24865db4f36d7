"""The host at the other end of a socket, whatever the socket is."""

import socket

from bus.transports.sockets import far_host


def test_a_connection_has_the_address_of_the_other_machine() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as near,
    ):
        assert far_host(near) == "127.0.0.1"


def test_local_sockets_and_those_that_are_not_connected_have_none() -> None:
    near, far = socket.socketpair()
    with near, far, socket.socket() as alone:
        assert [far_host(one) for one in (near, alone)] == ["", ""]
    assert far_host(near) == ""
