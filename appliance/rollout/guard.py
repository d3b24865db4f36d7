"""The process on a gateway that goes back from a roll-out which nobody confirms: `guard FILE GATEWAY ID`."""

import sys
import time

from appliance.rollout.station import Station

_LOOK_S = 1.0


def main(file: str, gateway: str, name: str) -> None:
    """Wait until the roll-out `name` is confirmed or has gone back; go back when its time is over."""
    station = Station(file, gateway)
    while True:
        time.sleep(_LOOK_S)
        try:
            if station.expire(name):
                return
        except OSError:
            continue  # a step is under way, or the disk is full: later


if __name__ == "__main__":
    main(*sys.argv[1:])
