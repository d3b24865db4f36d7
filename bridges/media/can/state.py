"""The state of a CAN controller, from the error frames of SocketCAN (linux/can/error.h); no I/O.

In ISO 11898-1 a controller is error-active while its error counter is below 128, error-passive from 128,
and bus-off above 255. Linux adds error-warning, from 96. An error frame has its error classes in the
identifier, and details in 8 bytes of data.
"""

from typing import Final, Literal

State = Literal["unknown", "error-active", "error-warning", "error-passive", "bus-off"]
TROUBLED: Final = ("error-passive", "bus-off")
"""The states which say more than any input: what comes then is as it is because of them."""

TX_TIMEOUT, ARBITRATION, CONTROLLER, PROTOCOL, TRANSCEIVER = 0x01, 0x02, 0x04, 0x08, 0x10
NO_ACK, BUS_OFF, BUS_ERROR, RESTARTED, COUNTERS = 0x20, 0x40, 0x80, 0x100, 0x200

FILTER = TX_TIMEOUT | CONTROLLER | TRANSCEIVER | BUS_OFF | RESTARTED
"""The error classes that we ask the kernel for. Others come in masses if `berr-reporting` is on."""

_RX_OVERFLOW, _TX_OVERFLOW, _WARNING, _PASSIVE, _ACTIVE = 0x01, 0x02, 0x0C, 0x30, 0x40
_CLASSES = {
    TX_TIMEOUT: "tx timeout",
    ARBITRATION: "arbitration lost",
    PROTOCOL: "protocol",
    TRANSCEIVER: "transceiver",
    NO_ACK: "no ack",
    BUS_ERROR: "bus error",
}


class BusState:
    """The state that the controller last reported, and the counts of its changes and errors.

    `entered` counts how often each state was entered, `restarts` the recoveries from bus-off, `errors` the
    error frames by class, `rx_overflows` the reports of lost frames. `tx_errors` and `rx_errors` are the
    controller's counters, 0 to 255, or None if it did not report them.
    """

    def __init__(self) -> None:
        self.state: State = "unknown"
        self.entered: dict[str, int] = {}
        self.errors: dict[str, int] = {}
        self.restarts = self.rx_overflows = 0
        self.tx_errors: int | None = None
        self.rx_errors: int | None = None

    def forget(self) -> None:
        """Set the state to `unknown`, because the bus is opened or closed."""
        self.state = "unknown"

    def enter(self, state: State) -> bool:
        """Set the state. Return whether it changed."""
        if state == self.state:
            return False
        self.state = state
        self.entered[state] = self.entered.get(state, 0) + 1
        return True

    def feed(self, classes: int, data: bytes | bytearray) -> bool:
        """Evaluate an error frame. Return whether the state changed.

        `classes` is its identifier without the top bits.
        """
        data = bytes(data).ljust(8, b"\0")
        for bit, name in _CLASSES.items():
            if classes & bit:
                self._count(name)
        if classes & (COUNTERS | CONTROLLER) and (classes & COUNTERS or data[6] or data[7]):
            self.tx_errors, self.rx_errors = data[6], data[7]
        status = data[1] if classes & CONTROLLER else 0
        self.rx_overflows += status & _RX_OVERFLOW
        if status & _TX_OVERFLOW:
            self._count("tx overflow")
        if classes & BUS_OFF:
            return self.enter("bus-off")
        if classes & RESTARTED:
            self.restarts += 1
            return self.enter("error-active")
        return self._controller(status)

    def _controller(self, status: int) -> bool:
        if status & _PASSIVE:
            return self.enter("error-passive")
        if status & _WARNING:
            return self.enter("error-warning")
        return bool(status & _ACTIVE) and self.enter("error-active")

    def _count(self, name: str) -> None:
        self.errors[name] = self.errors.get(name, 0) + 1
