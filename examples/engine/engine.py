"""An engine on a CAN bus that is a multicast group: it sends its messages, and follows `Command`."""

import sys
import time
from itertools import count
from pathlib import Path

import can
import cantools

GROUP = "239.74.163.41"


def main(turns: int) -> None:
    """Run the engine for some turns of 50 ms."""
    database = cantools.database.load_file(Path(__file__).with_name("engine.dbc"))
    torque = 0.0
    with can.Bus(interface="udp_multicast", channel=GROUP) as bus:
        for turn in range(turns) if turns else count():
            while (heard := bus.recv(0)) is not None:
                if heard.arbitration_id == database.get_message_by_name("Command").frame_id:
                    torque = database.decode_message("Command", heard.data)["Demand"]
            engine = {"Speed": 800 + 5 * torque, "Coolant": 88, "Torque": torque, "Running": 1}
            said = {"Engine": engine, "Gearbox": {"Gear": "Drive", "Oil": 61}}
            said["Cells"] = [{"Page": 0, "Cell1": 3.712, "Cell2": 3.705}, {"Page": 1, "Board": 31}][turn % 2]
            for name, values in said.items():
                message = database.get_message_by_name(name)
                data = message.encode(values)
                bus.send(can.Message(arbitration_id=message.frame_id, data=data, is_extended_id=False))
            time.sleep(0.05)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 0)
