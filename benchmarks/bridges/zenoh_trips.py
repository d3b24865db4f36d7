"""Round trips through a zenoh router: `zenoh_trips.py PORT SECONDS` prints the fields of `load roundtrip`.

Both clients are Python, whose share is small beside the hops.
"""

import json
import os
import sys
import time
from threading import Event

from zenoh_load import session  # type: ignore[import-not-found]


def main(port: int, seconds: float) -> None:
    """Ask and answer one message at a time, and print one JSON line."""
    here, there, answered = session(port), session(port), Event()
    answer = there.declare_publisher("a", express=True)
    ask = here.declare_publisher("b", express=True)
    kept = [
        there.declare_subscriber("b", lambda sample: answer.put(sample.payload)),
        here.declare_subscriber("a", lambda _: answered.set()),
    ]
    while not answered.wait(0.1):
        ask.put(bytes(64))
    time.sleep(0.3)
    times, end = list[float](), time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        answered.clear()
        ask.put(len(times).to_bytes(64, "big"))
        if not answered.wait(5):
            raise SystemExit("a message was lost")
        times.append((time.perf_counter() - began) * 1e6)
    times.sort()
    fields = {
        f"p{name}_us": times[int(len(times) * share)]
        for name, share in (("50", 0.5), ("99", 0.99), ("999", 0.999))
    }
    print(json.dumps(fields | {"round_trips": len(times), "errors": 0}), flush=True)
    del kept
    os._exit(0)  # the library would take seconds to close


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
