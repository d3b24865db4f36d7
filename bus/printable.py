"""Text of somebody else, fit for a terminal and a log. Pure."""


def plain(text: str) -> str:
    """Return `text` with `?` in place of each character that would move a cursor, or cannot be written."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def plain_lines(text: str) -> str:
    """Return `text` as `plain` does, with its lines."""
    return "\n".join(map(plain, text.split("\n")))
