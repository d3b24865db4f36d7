"""Delivery of notices to a webhook: a POST of JSON, with the notice's id as `Idempotency-Key`."""

import json

from appliance.alarms.notice import Notice
from appliance.alarms.outlets.outlet import Deliver
from appliance.outbox import Refused
from appliance.posting import LATER, post
from bus.machine.files import read_text
from bus.transports.secure import trusting
from topologies.model.alarms import WebhookSpec

_TOKEN_BYTES_MAX = 4096


def delivery(spec: WebhookSpec) -> Deliver:
    """Return the function that posts a notice. It reads files each time: they may be renewed.

    It raises `OSError` for a delivery to be tried again, `Refused` for an answer that tells not to.
    """

    def deliver(notice: Notice) -> None:
        headers = {"Idempotency-Key": f"{notice.id}/{notice.state}".encode().decode("latin-1")}
        if spec.token_file is not None:
            headers["Authorization"] = f"Bearer {read_text(spec.token_file, _TOKEN_BYTES_MAX).strip()}"
        trust = trusting(spec.ca_file) if spec.webhook.startswith("https:") else None
        body = json.dumps(notice.record()).encode()
        status = post(spec.webhook, body, headers, spec.timeout_s, trust).status
        if status in LATER:
            raise ConnectionError(f"the webhook answered {status}")
        if status // 100 != 2:
            raise Refused(f"the webhook answered {status}")

    return deliver
