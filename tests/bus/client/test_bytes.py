"""Every public call that takes bytes says so to a program that gives anything else."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bus.client.socket import Bus, RawBus
from bus.tmq import Client, tmq_bind, tmq_broker, tmq_init, tmq_publish, tmq_send, tmq_socket
from bus.wire.frame import pack

WRONG = ["text", 5, None, ["a"]]
CALLS: dict[str, Callable[[Any], object]] = {}


def _call(function: Callable[[Any], object]) -> Callable[[Any], object]:
    CALLS[function.__name__] = function
    return function


@_call
def bus_send(data: Any) -> None:
    with Bus() as bus:
        bus.send(("fridge",), data)


@_call
def bus_send_bytes(data: Any) -> None:
    with Bus() as bus:
        bus.send_bytes(data)


@_call
def raw_bus_send(data: Any) -> None:
    with RawBus() as bus:
        bus.send(data)


@_call
def a_frame(data: Any) -> None:
    pack(1, (1,), data)


@_call
def functions_of_2015(data: Any) -> None:
    with tmq_init() as context, tmq_socket(context) as made:
        tmq_bind(made, ("127.0.0.1", 0))
        tmq_broker(made, ("127.0.0.1", 1))
        made.node().publish((1,))
        tmq_send(made, (1,), data)


@_call
def tmq_client(data: Any) -> None:
    async def send() -> None:
        async with Client(brokers=["127.0.0.1:1"], listen="127.0.0.1:0", wait_s=0.0) as client:
            if data is not None:  # which declares the pattern only
                await client.publish((1,), data)
            client.send((1,), data)

    asyncio.run(send())


@pytest.mark.parametrize("data", WRONG, ids=repr)
@pytest.mark.parametrize("call", CALLS)
def test_what_is_not_bytes_is_a_type_error_in_plain_words(call: str, data: Any) -> None:
    with pytest.raises(TypeError, match=rf"must be bytes, not {type(data).__name__}"):
        CALLS[call](data)


def test_a_pattern_is_shown_by_the_names_that_the_program_gave() -> None:
    with tmq_init() as context, tmq_socket(context) as made:
        tmq_bind(made, ("127.0.0.1", 0))
        tmq_broker(made, ("127.0.0.1", 1))
        with pytest.raises(ValueError, match=r"^Pattern\('fridge', 0x00000007\) is not published: call"):
            tmq_send(made, ("fridge", 7), b"")
        with pytest.raises(ValueError, match=r"^nothing can be sent to the empty pattern"):
            tmq_send(made, (), b"")
        with pytest.raises(ValueError, match="the empty pattern cannot be published"):
            tmq_publish(made, ())
