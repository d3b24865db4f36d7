"""The people who may acknowledge alarms, each with a token of its own. Pure."""

from collections.abc import Callable, Mapping
from typing import Final

from bus.text import lines_in

PEOPLE_MAX: Final = 256


def check_token(token: str) -> str:
    """Return a token without blanks around it. Raises ValueError if it is too short or cannot be sent."""
    token = token.strip()
    good = 16 <= len(token) <= 256 and token.isascii() and token.replace("-", "").replace("_", "").isalnum()
    if not good:
        raise ValueError("a token has 16 to 256 of A to Z, a to z, 0 to 9, - and _")
    return token


def token_in(path: str, read: Callable[[str], str]) -> str:
    """Return the token in a file that `read` reads.

    Raises ValueError, with how to make one, if none is there, and other errors of `read`.
    """
    make = f"make one: (umask 077; openssl rand -hex 16 > {path})"
    try:
        return check_token(read(path))
    except FileNotFoundError:
        raise ValueError(f"{path}: No such file or directory: {make}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}: {make}") from error


def people_of(text: str) -> dict[str, str]:
    """Return the token of each person, from lines of a name and a token; `#` begins a comment line.

    Raises ValueError, with the number of the line.
    """
    found = dict[str, str]()
    for number, line in enumerate(lines_in(text), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, token = line.strip().partition(" ")
        try:
            token = check_token(token)
        except ValueError as error:
            raise ValueError(f"line {number}: write NAME TOKEN: {error}") from None
        if name in found or token in found.values() or not name.isprintable():
            raise ValueError(f"line {number}: each name and each token is there once")
        found[name] = token
    if not 0 < len(found) <= PEOPLE_MAX:
        raise ValueError(f"{len(found)} people are in it: 1 to {PEOPLE_MAX} may be")
    return found


class People:
    """The people by their tokens."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = {name: token.encode() for name, token in tokens.items()}

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def who(self, shown: str) -> str:
        """Return whose token somebody shows, "" for nobody's. It takes as long for a wrong one."""
        from hmac import compare_digest  # late: it loads OpenSSL

        found = [name for name, token in self._tokens.items() if compare_digest(shown.encode(), token)]
        return found[0] if found else ""


NOBODY: Final = People({})
