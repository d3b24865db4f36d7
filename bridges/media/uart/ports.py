"""Search for the serial devices of this machine, by name or USB id."""


def trouble(port: str) -> str:
    """Return what to do if no serial device of this machine matches a `hwgrep://` URL; "" if one does."""
    try:
        from serial.tools.list_ports import comports, grep
    except ImportError:
        return ""  # told by the need of the library
    expression = port.removeprefix("hwgrep://").split("&")[0]
    if next(iter(grep(expression)), None) is not None:
        return ""
    known = ", ".join(f"{one.device} ({one.hwid})" for one in comports()) or "none"
    return f"no serial device matches {expression}: plug it in; there are: {known}"
