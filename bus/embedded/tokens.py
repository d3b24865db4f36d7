"""A C header with the tokens of names: `python -m bus.embedded.tokens greenhouse temp > names.h`.

The node in C (`bus/embedded/c/`) takes numbers; a name is hashed on the desk, not on the board.
"""

import re
import sys
from collections.abc import Sequence

from bus.wire.pattern import token


def header(names: Sequence[str]) -> str:
    """Return a `#define TOKEN_...` for each name. Raises ValueError if two names would be one macro."""
    made: dict[str, str] = {}
    for name in names:
        macro = "TOKEN_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
        if made.setdefault(macro, name) != name:
            raise ValueError(f"{made[macro]!r} and {name!r} are both {macro}: rename one of them")
    return "".join(f"#define {macro} 0x{token(name):08X}u\n" for macro, name in made.items())


if __name__ == "__main__":
    try:
        sys.stdout.write(header(sys.argv[1:]))
    except ValueError as error:
        sys.exit(str(error))
