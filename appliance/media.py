"""From a topology's words to links: one function a medium, by table, its module imported late."""

from collections.abc import Callable
from typing import Any

from bus.hub import Link
from bus.links import make_link
from topologies import media, model


def bus_link(url: str, mode: Any, queue_bytes: int | None, message_bytes: int | None, tls: Any) -> Link:
    """An SP link. The stream transports bound a queue in bytes, NNG's in messages."""
    options: dict[str, Any] = {"message_bytes": message_bytes, "queue_bytes": queue_bytes}
    if not url.startswith(("tcp://", "ipc://")):
        del options["queue_bytes"]
        options["tls"] = _tls(tls) if tls is not None else None
    return make_link(url, mode, **{key: value for key, value in options.items() if value is not None})


def _tls(spec: media.Tls) -> Any:
    from bus.nng_socket import Tls

    return Tls(
        ca_file=spec.ca_file or "",
        cert_file=spec.cert_file or "",
        key_file=spec.key_file or "",
        server_name=spec.server_name or "",
        require_peer_cert=spec.require_peer_cert,
    )


def _link(spec: media.Link, _: model.Gateway) -> Link:
    return bus_link(spec.address, spec.mode, spec.queue_bytes, spec.message_bytes, spec.tls)


def _uart(spec: media.Uart, _: model.Gateway) -> Link:
    from bridges.uart import UartLink

    return UartLink(
        spec.port, spec.baud, exclusive=spec.exclusive, rtscts=spec.rtscts, queue_bytes=spec.queue_bytes
    )


def _can(spec: media.Can, gateway: model.Gateway) -> Link:
    from bridges.can import CanLink

    return CanLink(
        spec.interface,
        str(spec.channel),
        spec.node or gateway.node or 0,
        subject=spec.subject,
        fd=spec.fd,
        bitrate=spec.bitrate,
        data_bitrate=spec.data_bitrate,
        queue_bytes=spec.queue_bytes,
        options=dict(spec.options),
    )


MEDIA: dict[str, Callable[[Any, model.Gateway], Link]] = {"link": _link, "uart": _uart, "can": _can}


def medium_link(side: model.Side, gateway: model.Gateway) -> Link:
    """The link of one side of a bridge, not yet open. A `bus` side is joined, not linked."""
    return MEDIA[side.kind](side.medium, gateway)
