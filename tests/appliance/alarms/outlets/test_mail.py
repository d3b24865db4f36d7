"""Mail goes to all recipients by SMTP, and what the server answers decides."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_string
from threading import Thread

import pytest

from appliance.alarms.outlets import mail
from appliance.alarms.outlets.mail import delivery, message_of
from appliance.alarms.outlets.outlet import Deliver
from appliance.outbox import Refused
from tests.appliance.alarms.outlets.outlet_support import NOTICE
from tests.helpers.ports import free_port
from topologies.model.alarms import MailSpec


def spec(port: int = 25) -> MailSpec:
    people = ("ops@example.org", "ann@example.org")
    return MailSpec(mail=people, sender="plant@example.org", server=f"smtp://127.0.0.1:{port}", timeout_s=5)


@contextmanager
def serving(answers: dict[str, str]) -> Iterator[tuple[int, list[str]]]:
    """Serve one connection of SMTP, with other `answers` by command or line. Yield the port and all lines."""
    lines, listener = list[str](), socket.create_server(("127.0.0.1", free_port()))

    def talk() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw", newline="\r\n") as file:
            file.write("220 test\r\n")
            file.flush()
            inside = False
            for line in file:
                lines.append(line.rstrip("\r\n"))
                inside = inside and line != ".\r\n"
                if inside:
                    continue
                word = line.partition(" ")[0].strip().lower()
                inside = word == "data" and word not in answers
                answer = answers.get(word, "354 go on" if inside else "250 ok")
                file.write(f"{answers.get(lines[-1], answer)}\r\n")
                file.flush()
                if word == "quit":
                    return

    thread = Thread(target=talk, daemon=True)
    thread.start()
    with listener:
        yield listener.getsockname()[1], lines
        thread.join(10)


def test_a_mail_reaches_all_recipients() -> None:
    with serving({}) as (port, lines):
        delivery(spec(port))(NOTICE)
    assert [line for line in lines if line.startswith("rcpt")] == [
        "rcpt TO:<ops@example.org>", "rcpt TO:<ann@example.org>",
    ]  # fmt: skip
    text = "\n".join(lines[lines.index("data") + 1 : lines.index(".")])
    found = message_from_string(text)
    assert found["Subject"] == "[plant] warm raised: fridge/1: too warm"
    assert "cause: 9 is above 8" in text


def test_names_from_the_wire_cannot_add_headers() -> None:
    notice = NOTICE._replace(of="a\r\nBcc: evil@example.org", text="")
    assert message_of(spec(), notice)["Bcc"] is None


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"mail": "550 no"}, Refused),
        ({"mail": "451 later"}, ConnectionError),
        ({"rcpt": "550 unknown"}, Refused),
    ],
)
def test_an_answer_for_good_refuses_and_another_is_tried_again(
    answers: dict[str, str], error: type[Exception]
) -> None:
    with serving(answers) as (port, _), pytest.raises(error):
        delivery(spec(port))(NOTICE)


OPS, ANN = "rcpt TO:<ops@example.org>", "rcpt TO:<ann@example.org>"


@pytest.mark.parametrize(
    ("answers", "again", "said"),
    [
        ({"rcpt": "450 greylisted"}, [OPS, ANN], ""),
        ({OPS: "421 closing"}, [OPS, ANN], ""),
        ({ANN: "450 greylisted"}, [ANN], ""),
        ({OPS: "550 no", ANN: "450 greylisted"}, [ANN], "Refused: the server refused ops@example.org"),
    ],
)
def test_recipients_who_are_not_taken_yet_are_tried_again_and_they_alone(
    answers: dict[str, str], again: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver = delivery(spec())
    assert tried(deliver, answers, monkeypatch)[1].startswith("ConnectionError: the server does not take")
    assert tried(deliver, {}, monkeypatch) == (again, said)
    assert tried(deliver, {}, monkeypatch) == ([OPS, ANN], "")


def tried(
    deliver: Deliver, answers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], str]:
    """Return the recipients that a server with these answers hears of, and why the delivery failed."""
    said = ""
    with serving(answers) as (port, lines):
        monkeypatch.setattr(mail, "server_of", lambda _: ("127.0.0.1", port))
        try:
            deliver(NOTICE)
        except (ConnectionError, Refused) as error:
            said = f"{type(error).__name__}: {error}"
    return [line for line in lines if line.startswith("rcpt")], said


def test_a_recipient_who_is_refused_is_told_though_another_gets_the_mail() -> None:
    with serving({ANN: "550 unknown"}) as (port, lines):
        with pytest.raises(Refused, match=r"refused ann@example\.org$"):
            delivery(spec(port))(NOTICE)
    assert "." in lines


def test_a_server_elsewhere_needs_tls_and_this_machine_does_not() -> None:
    assert not spec().starts_tls
    assert MailSpec(mail=("a@b.c",), sender="a@b.c", server="smtp://mail.example.org").starts_tls
    assert not MailSpec(mail=("a@b.c",), sender="a@b.c", server="smtps://mail.example.org").starts_tls
