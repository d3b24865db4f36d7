"""The table of all targets."""

from typing import Final

from tests.fuzz.target import Target
from tests.fuzz.targets import boards, files, media, messages, services, streams, texts

TARGETS: Final[dict[str, Target]] = {
    target.name: target
    for part in (streams, media, boards, messages, services, texts, files)
    for target in part.TARGETS
}
