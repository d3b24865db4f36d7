"""The kinds of parts that run devices, by the word in a device's record (`DeviceSpec.part`)."""

from typing import Final

from appliance.parts.device import DevicePart
from bus.kinds import Kinds
from devices.device import DeviceSpec

PARTS: Final = Kinds[DevicePart](
    "buscoupler.parts",
    {
        "service": "appliance.parts.service:ServicePart",
        "recorder": "appliance.parts.tap:TapPart",
        "telemetry": "appliance.telemetry.part:TelemetryPart",
    },
)


def part_class(spec: DeviceSpec) -> type[DevicePart]:
    """Return the class that runs a device. Raises `TypeError` for a record that names no kind of part."""
    made = PARTS.find(spec.part)
    if made is None or not issubclass(made, DevicePart):
        known = ", ".join(PARTS.all())
        raise TypeError(f'{type(spec).__name__}: part = "{spec.part}" is no kind of part: {known}')
    return made
