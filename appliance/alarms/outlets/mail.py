"""Delivery of notices by e-mail, over SMTP."""

import smtplib
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from typing import NamedTuple

from appliance.alarms.notice import Notice
from appliance.alarms.outlets.outlet import Deliver
from appliance.outbox import Refused
from bus.machine.files import read_text
from bus.transports.secure import trusting
from topologies.model.alarms import MailSpec, server_of

Answers = Mapping[str, tuple[int, bytes]]
"""The code and the words of the server's answer, by recipient."""
_PASSWORD_BYTES_MAX = 4096


def delivery(spec: MailSpec) -> Deliver:
    """Return the function that sends a notice. A server that refuses for good (5yz) is not asked again.

    One that offers no STARTTLS, or no login, gets neither the password nor the notice. Recipients whom it
    refuses for now (4yz, as by greylisting) are tried again, and they alone.
    """
    rest: dict[Notice, _Rest] = {}  # of the notice that is tried again

    def deliver(notice: Notice) -> None:
        before = rest.get(notice, _Rest(spec.mail))
        try:
            with closing(_connection(spec)) as server:
                answers = _send(server, spec, notice, before.left)
        except smtplib.SMTPNotSupportedError as error:  # it may offer it again: somebody may be in between
            raise ConnectionError(f"{spec.server}: {error}") from error
        except smtplib.SMTPResponseException as error:
            login = isinstance(error, smtplib.SMTPAuthenticationError)
            words = f"the server answered {error.smtp_code}{f' to the login of {spec.user}' if login else ''}"
            if 500 <= error.smtp_code < 600:
                raise Refused(words) from error
            raise ConnectionError(words) from error
        rest.clear()
        after = before.after(answers)
        if after.left:
            rest[notice] = after
            raise ConnectionError(f"the server does not take mail yet for {', '.join(after.left)}")
        if after.refused:
            raise Refused(f"the server refused {', '.join(after.refused)}")

    return deliver


class _Rest(NamedTuple):
    """The recipients to whom a notice is still to be sent, and those whom the server refused for good."""

    left: tuple[str, ...]
    refused: tuple[str, ...] = ()

    def after(self, answers: Answers) -> "_Rest":
        """Return what is left after the server has not taken some recipients, with its answer for each."""
        final = {one for one, (code, _) in answers.items() if 500 <= code < 600}
        left = tuple(one for one in self.left if one in answers and one not in final)
        return _Rest(left, (*self.refused, *(one for one in self.left if one in final)))


def _send(server: smtplib.SMTP, spec: MailSpec, notice: Notice, to: Sequence[str]) -> Answers:
    """Send a mail, and return the recipients that were not taken.

    A fault after the server took it is none: to try again would send it twice.
    """
    if spec.starts_tls:
        server.starttls(context=trusting(spec.ca_file))
    if spec.user is not None and spec.password_file is not None:
        password = read_text(spec.password_file, _PASSWORD_BYTES_MAX).strip()
        if not (spec.user + password).isascii():  # the library sends no others, and tells a part of them
            raise Refused("the name or the password of the user is not ASCII")
        server.login(spec.user, password)
    try:
        found: Answers = server.send_message(message_of(spec, notice), to_addrs=to)
    except smtplib.SMTPRecipientsRefused as error:
        found = {one: error.recipients.get(one, (421, b"")) for one in to}  # nobody was sent anything
    with suppress(OSError):
        server.quit()
    return found


def _connection(spec: MailSpec) -> smtplib.SMTP:
    host, port = server_of(spec.server)
    if spec.server.startswith("smtps:"):
        return smtplib.SMTP_SSL(host, port, timeout=spec.timeout_s, context=trusting(spec.ca_file))
    return smtplib.SMTP(host, port, timeout=spec.timeout_s)


def message_of(spec: MailSpec, notice: Notice) -> EmailMessage:
    """Return the mail of a notice."""
    message = EmailMessage()
    message["Subject"] = notice.line()[:200]
    message["From"], message["To"] = spec.sender, ", ".join(spec.mail)
    message["Date"] = format_datetime(datetime.now(UTC))
    host = spec.sender.rpartition("@")[2]
    message["Message-ID"] = make_msgid(domain=host)
    message["Auto-Submitted"] = "auto-generated"
    message.set_content("\n".join(notice.lines()) + "\n")
    return message
