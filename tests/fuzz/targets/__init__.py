"""The table of all targets."""

from typing import Final

from tests.fuzz.target import Target
from tests.fuzz.targets import (
    asked,
    boards,
    cars,
    crossing,
    field,
    files,
    frames,
    journals,
    media,
    messages,
    services,
    signing,
    spoken,
    streams,
    texts,
)

TARGETS: Final[dict[str, Target]] = {
    target.name: target
    for part in (
        asked,
        streams,
        signing,
        media,
        spoken,
        boards,
        cars,
        frames,
        messages,
        services,
        texts,
        files,
        field,
        crossing,
        journals,
    )
    for target in part.TARGETS
}
