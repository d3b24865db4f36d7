"""Mail to a server of aiosmtpd: STARTTLS, TLS from the start, and the login of a user."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from email import message_from_bytes
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("aiosmtpd", reason="pip install aiosmtpd")

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword

from appliance.alarms.outlets.mail import delivery
from appliance.outbox import Refused
from bus.transports.secure import context
from tests.appliance.alarms.outlets.outlet_support import NOTICE
from tests.helpers.certificates import own_tls
from tests.helpers.ports import free_port
from topologies.model.alarms import MailSpec

pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
HERE = "127.0.0.1"


class Box:
    """The mails that the server took, and whether each came over TLS and from whom."""

    def __init__(self) -> None:
        self.mails: list[bytes] = []
        self.ways: list[tuple[bool, bool]] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        self.mails.append(envelope.content)
        self.ways.append(
            (server.transport.get_extra_info("ssl_object") is not None, bool(session.authenticated))
        )
        return "250 taken"


class Pem(NamedTuple):
    ca_file: str
    server: ssl.SSLContext


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Pem:
    tls = own_tls(tmp_path_factory.mktemp("tls"))
    return Pem(str(tls.ca_file), context("tls+tcp://127.0.0.1:1", replace(tls, ca_file=None), True))


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take this machine for another one, which needs STARTTLS."""
    monkeypatch.setattr("topologies.model.alarms.is_loopback", lambda _: False)


def log_in(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    return AuthResult(success=data == LoginPassword(b"plant", b"secret"), handled=False)


@contextmanager
def serving(**options: Any) -> Iterator[tuple[int, Box]]:
    box, port = Box(), free_port()
    made = Controller(box, hostname=HERE, port=port, **options)
    made.start()
    try:
        yield port, box
    finally:
        made.stop()


def spec(port: int, folder: Path, password: str = "secret", scheme: str = "smtp", **more: Any) -> MailSpec:
    file = folder / "password"
    file.write_text(f"{password}\n")
    own: dict[str, Any] = {"user": "plant", "password_file": str(file)} | more
    return MailSpec(
        mail=("ops@example.org",), sender="plant@example.org", server=f"{scheme}://{HERE}:{port}",
        timeout_s=5, **own,
    )  # fmt: skip


def test_a_server_elsewhere_gets_the_login_and_the_mail_over_starttls(
    tmp_path: Path, pem: Pem, elsewhere: None
) -> None:
    options = {"tls_context": pem.server, "require_starttls": True, "authenticator": log_in}
    with serving(**options, auth_required=True) as (port, box):
        delivery(spec(port, tmp_path, ca_file=pem.ca_file))(NOTICE)
    assert box.ways == [(True, True)]
    assert message_from_bytes(box.mails[0])["Subject"] == "[plant] warm raised: fridge/1: too warm"


def test_smtps_begins_with_tls(tmp_path: Path, pem: Pem) -> None:
    with serving(ssl_context=pem.server, authenticator=log_in, auth_require_tls=False) as (port, box):
        delivery(spec(port, tmp_path, scheme="smtps", ca_file=pem.ca_file))(NOTICE)
    assert box.ways == [(True, True)]


def test_a_server_without_starttls_gets_neither_the_password_nor_the_mail(
    tmp_path: Path, elsewhere: None
) -> None:
    with serving(authenticator=log_in, auth_require_tls=False) as (port, box):
        with pytest.raises(ConnectionError, match=rf"smtp://{HERE}:{port}: STARTTLS.* not supported"):
            delivery(spec(port, tmp_path))(NOTICE)
    assert box.mails == []


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_a_certificate_that_nobody_signed_is_no_server_for_it(
    scheme: str, tmp_path: Path, pem: Pem, elsewhere: None
) -> None:
    options: dict[str, Any] = {"tls_context" if scheme == "smtp" else "ssl_context": pem.server}
    with serving(**options) as (port, box), pytest.raises(ssl.SSLCertVerificationError):
        delivery(spec(port, tmp_path, scheme=scheme))(NOTICE)
    assert box.mails == []


def test_a_refused_login_is_final_and_tells_no_password(tmp_path: Path) -> None:
    with serving(authenticator=log_in, auth_required=True, auth_require_tls=False) as (port, box):
        with pytest.raises(Refused) as told:
            delivery(spec(port, tmp_path, "wrong"))(NOTICE)
    assert str(told.value) == "the server answered 535 to the login of plant"
    assert box.mails == []


def test_a_login_that_a_server_does_not_know_or_nobody_can_send_is_told(tmp_path: Path) -> None:
    with serving() as (port, box):
        with pytest.raises(ConnectionError, match=r"AUTH.* not supported"):
            delivery(spec(port, tmp_path))(NOTICE)
        with pytest.raises(Refused, match="is not ASCII"):
            delivery(spec(port, tmp_path, "sécret"))(NOTICE)
        delivery(spec(port, tmp_path, user=None, password_file=None))(NOTICE)
    assert box.ways == [(False, False)]
