"""The framing of WebSocket links. It is loaded late: few buses need it."""

import os
import socket
from collections.abc import Callable
from functools import partial

from bus.transports.framing import Framing, Once, Toil
from bus.transports.scratch import shared_scratch
from bus.urls import Url
from bus.wire.batch import Batch
from bus.wire.handshake import Handshake
from bus.wire.websocket.decoder import ODD, Decoder
from bus.wire.websocket.frames import CLOSE, HEAD_BYTES_MAX, Keys, control, divide, encode
from bus.wire.websocket.origins import Origins
from bus.wire.websocket.upgrade import ClientUpgrade, ServerUpgrade

_GOING_AWAY = (1001).to_bytes(2, "big")


def listening_framing(url: Url, message_bytes: int, origins: tuple[str, ...] = ()) -> Framing:
    """Return SP BUS over WebSocket (docs/wire/websocket.md) for a link that listens at `url`."""
    pages = Origins(origins, (url.host, socket.gethostname()))
    return _framing(message_bytes, partial(ServerUpgrade, url.path, pages), None)


def dialling_framing(url: str, message_bytes: int) -> Framing:
    """Return SP BUS over WebSocket for a link that dials `url`: every frame has a mask of its own."""
    return _framing(message_bytes, partial(ClientUpgrade, url), os.urandom)


def _framing(message_bytes: int, upgrade: Callable[[], Handshake], keys: Keys | None) -> Framing:
    def encoded(batch: Batch) -> tuple[bytes, int]:
        return encode(batch, keys), batch.count

    return Framing(
        lambda _: Decoder(shared_scratch(), message_bytes, keys),
        upgrade,
        Once(encoded),
        divide=divide,
        head_bytes=HEAD_BYTES_MAX,
        answer=_answer,
        farewell=lambda: control(CLOSE, _GOING_AWAY, keys),
        toil=_toil,
    )


def _toil(decoder: Decoder) -> Toil:
    return "chores" if 4 * decoder.odd > ODD else ""


def _answer(decoder: Decoder) -> tuple[bytes, bool]:
    return decoder.answer(), decoder.ended
