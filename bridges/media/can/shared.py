"""The state that the pipes of one CAN link share, from one opening of the bus to the next."""

from dataclasses import dataclass, field

from bridges.media.can.echo import Echoes
from bridges.media.can.medium import Can
from bridges.media.can.state import BusState
from bridges.media.can.window import Window
from bridges.media.shedding import Shed
from bridges.media.wire import WireTap
from bus.ledger import Stats


@dataclass(frozen=True, slots=True)
class Shared:
    """The state of a link on the bus. `own` has the frames that we sent and that may still come back.

    `in_flight`: how many frames the driver may have; None: as `window` says.
    """

    name: str
    options: Can
    stats: Stats
    shed: Shed
    in_flight: int | None
    bus: BusState
    own: Echoes
    wire: WireTap = field(default_factory=WireTap)

    def window(self) -> Window:
        """Return the bound of the frames in the driver, for a new opening."""
        if self.in_flight is not None:
            return Window(0, self.in_flight)
        return Window(2 * self.options.gather_ms / 1000)
