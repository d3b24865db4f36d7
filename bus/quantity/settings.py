"""The settings of a value as they stand in a file, the same for registers, rules and codecs. Pure."""

from typing import Annotated

from bus.quantity.raw import TEXT, Layout, Order, Type, check_order

OrderSetting = Annotated[Order | None, "in which the bytes are sent, A the highest"]
ScaleSetting = Annotated[float, "the value is the number that is sent, times this"]
OffsetSetting = Annotated[float, "and this is added"]


def check_scaled(layout: Layout, scale: float, offset: float) -> None:
    """Raise ValueError if order, scale and offset do not fit the type and size of a value."""
    check_order(layout)
    check_scale(scale, offset, "" if is_number(layout.type) else layout.type)


def check_scale(scale: float, offset: float, other: str) -> None:
    """Raise ValueError if scale and offset are none, or if a type has neither: `other`, "" for none."""
    if not scale or scale - scale or offset - offset:
        raise ValueError("scale is not 0, and scale and offset are finite")
    if other and (scale, offset) != (1, 0):
        raise ValueError(f"type {other} has no scale and no offset")


def is_number(type_: Type) -> bool:
    """Return whether values of a type are numbers: neither text nor true and false."""
    return type_ not in TEXT and type_ != "bool"
