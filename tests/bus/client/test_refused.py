"""What the application's socket refuses before it sends, listens or dials."""

from pathlib import Path

import pytest

from bus.client.socket import Bus, RawBus, Tls
from bus.errors import FrameError, LinkError, TokenError
from tests.bus.client.sockets import LOOPBACK, TEMP


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "bogus://127.0.0.1:1",
        "tcp://",
        "tcp://127.0.0.1:99999",
        "tls+tcp://127.0.0.1:0",
        "ipc:///no/such/folder/socket",
    ],
)
def test_an_address_that_cannot_work_is_refused_by_name(url: str) -> None:
    with pytest.raises(LinkError) as caught:
        Bus(listen=url)
    assert url in str(caught.value)


@pytest.mark.parametrize(
    "url", ["nonsense", "bogus://127.0.0.1:1", "tcp://127.0.0.1:99999", "tcp://", "tcp://a..b:5"]
)
def test_dialing_what_cannot_work_is_refused_by_name(url: str) -> None:
    with pytest.raises(LinkError) as caught:
        Bus(dial=url)
    assert url in str(caught.value)


def test_a_medium_is_refused_with_advice() -> None:
    with pytest.raises(LinkError, match="joined by a bridge: dial the bus"):
        Bus(dial="multicast:239.255.42.1:9943?interface=lo")


def test_a_missing_tls_file_and_a_broken_one_are_named(tmp_path: Path) -> None:
    (tmp_path / "broken.pem").write_text("not a certificate")
    for name in ("missing.pem", "broken.pem"):
        with pytest.raises(LinkError) as caught:
            Bus(listen="wss://127.0.0.1:0/x", tls=Tls(cert_file=str(tmp_path / name)))
        assert name in str(caught.value)
        assert "wss://" in str(caught.value)


def test_a_taken_port_and_a_socket_that_would_hear_itself() -> None:
    with Bus(listen=LOOPBACK) as bus:
        with pytest.raises(LinkError) as caught:
            Bus(listen=bus.urls)
        assert bus.urls[0] in str(caught.value)
    with pytest.raises(LinkError, match="hear itself"):
        Bus(listen="inproc://self", dial="inproc://self")
    for kind in (Bus, RawBus):
        with pytest.raises(LinkError, match=r"tcp://127\.0\.0\.1:9: dialled twice"):
            kind(dial=["tcp://127.0.0.1:9"] * 2)


def test_unfit_limits_are_refused() -> None:
    for limits in ({"queue_messages": 9000}, {"message_bytes": 0}, {"retry_min_s": 2.0, "retry_max_s": 1.0}):
        with pytest.raises(ValueError, match=r"must be|at least"):
            Bus(**limits)
    with pytest.raises(TypeError):
        Bus(typo=1)


def test_what_fits_no_frame_is_refused_before_sending() -> None:
    with Bus(listen="inproc://unfit") as bus:
        with pytest.raises(FrameError):
            bus.send(TEMP, bytes(2049))
        with pytest.raises(TokenError, match=r"\('fridge',\)"):
            bus.send("fridge", b"")
        with pytest.raises(TokenError):
            bus.send((-1,), b"")
