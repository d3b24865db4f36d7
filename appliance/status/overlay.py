"""What a picture of a topology shows of a status: a mark for each node and edge, by its id. Pure.

The status page, `show --live` and its SVG all take their marks from here.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from topologies.picture.svg import Mark, State
from topologies.wiring.ids import bridge_id, gateway_id

Status = Mapping[str, Any]
_STATES: Mapping[str, State] = {"up": "ok", "opening": "wait", "waiting": "bad", "closed": "bad", "": "ok"}
_WORSE: Sequence[State] = ("bad", "wait", "ok", "ready", "idle")


def marks(status: Status) -> dict[str, Mark]:
    """Return the marks that one gateway knows of. What runs elsewhere is marked as far as it is seen here."""
    found = dict(_of_gateways(status))
    found |= dict(_of_claims(status))
    found |= dict(_of_parts(status))
    edges = dict(_of_ends(status))
    return found | edges | dict(_of_wires(status, edges))


def _of_gateways(status: Status) -> Iterator[tuple[str, Mark]]:
    for name in status["gateways"]:
        if name == status["gateway"]:
            yield gateway_id(name), Mark("ok", "this gateway")
        elif name in status["silent"]:
            yield gateway_id(name), Mark("bad", "not seen from here")
        else:
            yield gateway_id(name), Mark("ok", "lives")


def _of_claims(status: Status) -> Iterator[tuple[str, Mark]]:
    """Yield the copies of bridges on other gateways, as brokers here hear of them."""
    for broker in status["brokers"]:
        for lease in broker["leases"]:
            for one in lease["candidates"]:
                if one["name"] != status["gateway"]:
                    state: State = "ok" if one["holding"] else "ready" if one["ready"] else "wait"
                    word = "active" if one["holding"] else "standby" if one["ready"] else "not ready"
                    yield bridge_id(lease["bridge"], one["name"]), Mark(state, word)


def _of_parts(status: Status) -> Iterator[tuple[str, Mark]]:
    hubs = {hub["name"]: hub for hub in status["hubs"]}
    roles = {one["bridge"]: one for one in status["candidates"]}
    taps = {tap["name"]: tap for tap in status["taps"]}
    connections = {broker["name"]: broker["counts"].get("connections") for broker in status["brokers"]}
    for part in status["parts"]:
        state, name = _STATES[part["state"]], part["name"]
        if part["kind"] == "bridge" and name in roles:
            yield part["id"], _role(roles[name], state)
        elif part["kind"] in ("bus", "bridge"):
            yield part["id"], _busy(hubs.get(name), state, part)
        elif name in taps:
            yield part["id"], _tap(taps[name], state)
        else:
            count = connections.get(f"broker {name}")
            yield part["id"], Mark(state, part["state"] or "up", () if count is None else (_peers(count),))


def _role(role: Mapping[str, Any], state: State) -> Mark:
    if not role["ready"]:
        return Mark("bad" if state == "bad" else "wait", f"{role['role']}, not ready")
    return Mark("ok" if role["role"] == "active" else "ready", role["role"], (f"epoch {role['epoch']}",))


def _busy(hub: Mapping[str, Any] | None, state: State, part: Mapping[str, Any]) -> Mark:
    """Return the mark of a bus or bridge: its peers, and what comes into it in a second."""
    rows = [] if hub is None else hub["links"]
    rates = [row["rates"]["received_per_s"] for row in rows if "rates" in row]
    peers = sum(row["live"] for row in rows)
    words = (_peers(peers), *((f"{short(sum(rates))}/s",) if rates else ()))
    return Mark(state, "" if state == "ok" else part["state"], words)


def _peers(count: int) -> str:
    return "1 peer" if count == 1 else f"{count} peers"


def _tap(tap: Mapping[str, Any], state: State) -> Mark:
    fill = 100 * tap["waiting_bytes"] // max(1, tap["ring_bytes"])
    return Mark("bad" if tap["lost"] else state, tap["state"], (f"ring {fill} %",))


def _of_ends(status: Status) -> Iterator[tuple[str, Mark]]:
    """Yield the edges. Of several ends of one edge, the worst counts, and all their rates."""
    hubs = {hub["name"]: hub["links"] for hub in status["hubs"]}
    by_id = defaultdict[str, list[Mapping[str, Any]]](list)
    for end in status["ends"]:
        by_id[end["id"]].append(end)
    for name, ends in by_id.items():
        rows = [row for end in ends for row in hubs.get(end["hub"], ()) if is_of(row["name"], end["row"])]
        worst = min(ends, key=lambda end: _WORSE.index(_STATES[end["state"]]))
        rates = [row["rates"] for row in rows if "rates" in row]
        yield name, Mark(_STATES[worst["state"]], _word(worst), _lines(rates))


def is_of(row: str, link: str) -> bool:
    """Return whether a row of a hub counts a link: in a bridge its side stands before the name, or is it."""
    return row == link or row.startswith(f"{link}/") or row.endswith(f"/{link}")


def _word(end: Mapping[str, Any]) -> str:
    condition = end["condition"]
    return str(end["state"] if condition in ("", "unknown") else condition)


def _lines(rates: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    if not rates:
        return ()
    inward, outward = (sum(one[key] for one in rates) for key in ("received_per_s", "sent_per_s"))
    return f"in {short(inward)}/s", f"out {short(outward)}/s"


def _of_wires(status: Status, edges: Mapping[str, Mark]) -> Iterator[tuple[str, Mark]]:
    """Yield the wires: each is as the best of the links to it that this gateway has."""
    drawing = status.get("drawing")
    by_wire = defaultdict[str, list[Mark]](list)
    wires = {node["id"] for node in drawing["nodes"] if node["kind"] == "wire"} if drawing else set()
    for edge in drawing["edges"] if drawing else ():
        if edge["other"] in wires and edge["id"] in edges:
            by_wire[edge["other"]].append(edges[edge["id"]])
    for wire, found in by_wire.items():
        best = max(found, key=lambda mark: _WORSE.index(mark.state))
        yield wire, Mark(best.state, best.word)


def short(number: float) -> str:
    """Return a rate in at most five characters."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}" if number < 999 * size else f"{number / size:.0f}{unit}"
    return f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
