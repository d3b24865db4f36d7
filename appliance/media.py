"""From a topology's words to links: one function a medium, by table, its module imported late."""

from collections.abc import Callable
from typing import Any

from bridges.media.shedding import Shed
from bus.hub import Link
from bus.transports.links import make_link
from topologies import media, model


def bus_link(url: str, mode: Any, queue_bytes: int | None, message_bytes: int | None, tls: Any) -> Link:
    """An SP link. The stream transports bound a queue in bytes, NNG's in messages."""
    options: dict[str, Any] = {"message_bytes": message_bytes, "queue_bytes": queue_bytes}
    if not url.startswith(("tcp://", "ipc://")):
        del options["queue_bytes"]
        options["tls"] = _tls(tls) if tls is not None else None
    return make_link(url, mode, **{key: value for key, value in options.items() if value is not None})


def _tls(spec: media.Tls) -> Any:
    from bus.transports.nng_socket import Tls

    return Tls(
        ca_file=spec.ca_file or "",
        cert_file=spec.cert_file or "",
        key_file=spec.key_file or "",
        server_name=spec.server_name or "",
        require_peer_cert=spec.require_peer_cert,
    )


def _link(spec: media.Link, _: model.Gateway, shed: Shed | None) -> Link:
    link = bus_link(spec.address, spec.mode, spec.queue_bytes, spec.message_bytes, spec.tls)
    return _staged(link, shed)


def _staged(link: Link, shed: Shed | None) -> Link:
    """A link that queues in batches, with its shedding in front."""
    if shed is None:
        return link
    from bridges.media.shed_pipe import ShedLink

    return ShedLink(link, shed)


_LINE = ("port", "baud", "exclusive", "parity", "stopbits", "rtscts", "queue_bytes")


def _uart(spec: media.Uart, _: model.Gateway, shed: Shed | None) -> Link:
    line: dict[str, Any] = {name: getattr(spec, name) for name in _LINE}
    line |= {"shed": shed, "echo": spec.echo}
    if spec.rs485 is not None:
        from bridges.media.uart.rs485 import Rs485Link

        shared = spec.rs485
        return Rs485Link(
            nodes=shared.nodes, answer_ms=shared.answer_ms, turnaround_ms=shared.turnaround_ms, **line
        )
    from bridges.media.uart.link import UartLink

    return UartLink(**line)


def _can(spec: media.Can, gateway: model.Gateway, shed: Shed | None) -> Link:
    from bridges.media.can.link import CanLink

    return CanLink(
        spec.interface,
        str(spec.channel),
        spec.node or gateway.node or 0,
        subject=spec.subject,
        fd=spec.fd,
        bitrate=spec.bitrate,
        data_bitrate=spec.data_bitrate,
        bitrate_switch=spec.bitrate_switch,
        mixed=spec.mixed,
        queue_bytes=spec.queue_bytes,
        options=dict(spec.options),
        shed=shed,
    )


def _i2c(spec: media.I2c, _: model.Gateway, shed: Shed | None) -> Link:
    from bridges.media.i2c.link import I2cLink

    return I2cLink(
        spec.bus,
        spec.targets,
        poll_ms=spec.poll_ms,
        queue_bytes=spec.queue_bytes,
        alert=spec.alert,
        shed=shed,
    )


def _multicast(spec: media.Multicast, _: model.Gateway, shed: Shed | None) -> Link:
    from bridges.media.multicast.link import MulticastLink

    return MulticastLink(
        spec.group,
        spec.port,
        spec.interface,
        hops=spec.hops,
        datagram_bytes=spec.datagram_bytes,
        queue_bytes=spec.queue_bytes,
        shed=shed,
    )


def _tcp(spec: media.Tcp, _: model.Gateway, shed: Shed | None) -> Link:
    from bridges.media.tcp.link import TcpFramesLink

    link = TcpFramesLink(
        spec.host, spec.port, mode=spec.mode, framing=spec.framing, queue_bytes=spec.queue_bytes
    )
    return _staged(link, shed)


MEDIA: dict[str, Callable[[Any, model.Gateway, Shed | None], Link]] = {
    "link": _link,
    "uart": _uart,
    "can": _can,
    "i2c": _i2c,
    "multicast": _multicast,
    "tcp": _tcp,
}


def medium_link(side: model.Side, gateway: model.Gateway) -> Link:
    """The link of one side of a bridge, not yet open. A `bus` side is joined, not linked."""
    return MEDIA[side.kind](side.medium, gateway, _shed(side))


_QUEUE_BYTES = 1 << 20


def _shed(side: model.Side) -> Shed | None:
    """The side's words as a policy; the queue is as large as the medium's where they do not say."""
    words = side.shed
    if words is None:
        return None
    queue_bytes = words.queue_bytes or getattr(side.medium, "queue_bytes", None) or _QUEUE_BYTES
    return Shed(words.policy, queue_bytes, None if words.age_ms is None else words.age_ms / 1000, words.rate)
