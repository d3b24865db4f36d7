"""Delivery of notices by e-mail, over SMTP."""

import smtplib
from contextlib import closing, suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid

from appliance.alarms.notice import Notice
from appliance.alarms.outlets.outlet import Deliver
from appliance.outbox import Refused
from bus.machine.files import read_text
from bus.transports.secure import trusting
from topologies.model.alarms import MailSpec, server_of

_PASSWORD_BYTES_MAX = 4096


def delivery(spec: MailSpec) -> Deliver:
    """Return the function that sends a notice. A server that refuses for good (5yz) is not asked again.

    One that offers no STARTTLS, or no login, gets neither the password nor the notice.
    """

    def deliver(notice: Notice) -> None:
        try:
            with closing(_connection(spec)) as server:
                _send(server, spec, notice)
        except smtplib.SMTPNotSupportedError as error:  # it may offer it again: somebody may be in between
            raise ConnectionError(f"{spec.server}: {error}") from error
        except smtplib.SMTPRecipientsRefused as error:
            raise Refused(f"all recipients were refused: {', '.join(error.recipients)}") from error
        except smtplib.SMTPResponseException as error:
            login = isinstance(error, smtplib.SMTPAuthenticationError)
            words = f"the server answered {error.smtp_code}{f' to the login of {spec.user}' if login else ''}"
            if 500 <= error.smtp_code < 600:
                raise Refused(words) from error
            raise ConnectionError(words) from error

    return deliver


def _send(server: smtplib.SMTP, spec: MailSpec, notice: Notice) -> None:
    """Send a mail. A fault after the server took it is none: to try again would send it twice."""
    if spec.starts_tls:
        server.starttls(context=trusting(spec.ca_file))
    if spec.user is not None and spec.password_file is not None:
        password = read_text(spec.password_file, _PASSWORD_BYTES_MAX).strip()
        if not (spec.user + password).isascii():  # the library sends no others, and tells a part of them
            raise Refused("the name or the password of the user is not ASCII")
        server.login(spec.user, password)
    server.send_message(message_of(spec, notice))
    with suppress(OSError):
        server.quit()


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
