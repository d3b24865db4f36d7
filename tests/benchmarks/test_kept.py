"""The comparison of what is kept: the clients understand their servers, and a gateway has what it says."""

from pathlib import Path

import pytest

from benchmarks.kept import JetStream, Load, Mosquitto, Trunk


@pytest.mark.parametrize("cut", range(60))
def test_acknowledgements_of_jetstream_are_read_wherever_they_are_cut(cut: int, tmp_path: Path) -> None:
    one, other = (b'{"stream":"kept","seq":%d}' % number for number in (1, 2))
    said = b"MSG ack.7 1 25\r\n%s\r\nMSG ack.8 1 25\r\n%s\r\nPING\r\n" % (one, other)
    server = JetStream(tmp_path)
    server.begin(1)
    server.kill()
    found = [*server.acknowledged(said[:cut]), *server.acknowledged(said[cut:])]
    assert found == [7, 8]


def test_packet_identifiers_of_mosquitto_begin_anew_after_65535(tmp_path: Path) -> None:
    server = Mosquitto(tmp_path)
    server.begin(65_530)
    data = b"".join(b"\x40\x02" + (number % 65_535 + 1).to_bytes(2) for number in range(65_530, 65_540))
    server.kill()
    found = [*server.acknowledged(data[:6]), *server.acknowledged(data[6:])]
    assert found == list(range(65_530, 65_540))


def test_a_gateway_keeps_what_it_has_acknowledged_over_a_kill(tmp_path: Path) -> None:
    server = Trunk(tmp_path)
    server.start()
    try:
        server.connect(1)
        load = Load(server)
        load.run(0.1)
        server.kill()
        assert load.acknowledged
        assert load.acknowledged <= server.held()
    finally:
        server.kill()
