"""The words for what input looks like that nobody understands. Pure."""

from typing import Final

_SURE: Final = 0.5


def likeness(sample: bytes, spoken: str = "tmq", is_line: bool = True) -> str:
    """Return what input looks like, with the setting for it; "" if that is unknown, or what is `spoken`.

    Settings of a serial line are advised only where there is one (`is_line`).
    """
    from bridges.media.guess import of_bytes  # late: most gateways never have such input

    found = of_bytes([sample])
    if found.protocol == "" or found.share < _SURE or (found.line and not is_line):
        return ""
    if found.protocol == "tmq" != spoken:
        return f"{found.words}: leave `protocol` out"
    fitting = [f"{key}: {value}" for key, value in found.line.items()]
    fitting += [f"protocol: {found.protocol}"] if found.protocol != spoken else []
    return f"{found.words}: `{', '.join(fitting)}`" if fitting else ""
