"""The bridges of other libraries, one in a process: `foreign.py zmq|zenoh INTAKE OUTLET`."""

import json
import sys
import threading

HIGH_WATER = 1_000_000  # messages; at the default of 1000 zmq_proxy drops most of a burst


def zmq_proxy(intake: int, outlet: int) -> None:
    """Run libzmq's own C proxy, from publishers to subscribers. The subscribers' prefixes are its filter."""
    import zmq

    context = zmq.Context()
    front, back = context.socket(zmq.XSUB), context.socket(zmq.XPUB)
    for socket in (front, back):
        socket.setsockopt(zmq.SNDHWM, HIGH_WATER)
        socket.setsockopt(zmq.RCVHWM, HIGH_WATER)
    back.bind(f"tcp://127.0.0.1:{outlet}")
    front.bind(f"tcp://127.0.0.1:{intake}")
    zmq.proxy(front, back)


def zenoh_router(intake: int, _: int) -> None:
    """Run a session in router mode, which routes in the library's Rust threads. Both clients dial it."""
    import zenoh

    config = zenoh.Config()
    config.insert_json5("mode", '"router"')
    config.insert_json5("listen/endpoints", json.dumps([f"tcp/127.0.0.1:{intake}"]))
    config.insert_json5("scouting/multicast/enabled", "false")
    with zenoh.open(config):
        threading.Event().wait()


if __name__ == "__main__":
    {"zmq": zmq_proxy, "zenoh": zenoh_router}[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
