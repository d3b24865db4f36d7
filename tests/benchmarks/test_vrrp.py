"""The client of `benchmarks.vrrp` finds the host that has the address, whichever way the other one went."""

from asyncio import StreamReader, StreamWriter, start_server
from pathlib import Path

import pytest

from benchmarks import vrrp
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.rigs.takeovers.relays import Line


async def test_a_client_dials_again_where_a_host_without_power_ends_no_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vrrp, "ADDRESS", "127.0.0.1")
    monkeypatch.setattr(vrrp, "PORT", free_port())
    monkeypatch.setattr(vrrp, "_SILENT_S", 0.02)
    dialled: list[StreamWriter] = []
    line = Line(tmp_path, 3)

    def accept(_: StreamReader, writer: StreamWriter) -> None:
        if dialled:  # the first one says nothing
            writer.write(b"2:7\0")
        dialled.append(writer)

    server = await start_server(accept, vrrp.ADDRESS, vrrp.PORT)
    client = vrrp.Client(line)
    await until(lambda: 7 in client.heard, what="a message by another connection")
    client.close()
    for writer in dialled:
        writer.close()
    server.close()
    line.close()
