"""The table of all targets."""

from typing import Final

from tests.fuzz.target import Target
from tests.fuzz.targets import boards, crossing, files, media, messages, services, streams, texts

TARGETS: Final[dict[str, Target]] = {
    target.name: target
    for part in (streams, media, boards, messages, services, texts, files, crossing)
    for target in part.TARGETS
}
