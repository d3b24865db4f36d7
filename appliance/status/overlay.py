"""The overlay of a picture: a mark for each node and edge of a topology, from a status, by id. Pure.

The status page, `show --live` and its SVG all take their marks from here.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from appliance.status.conditions import judged
from appliance.status.ledger import Parted
from appliance.status.words import fault, is_in_trouble, role_word, short, state_word
from bus.ledger import Stats
from bus.text import amount
from topologies.picture.marks import SIGNS, Mark, State
from topologies.wiring.ids import gateway_id

Status = Mapping[str, Any]
_STATES: Mapping[str, State] = {"up": "ok", "opening": "wait", "waiting": "bad", "closed": "bad", "": "ok"}
_WORDS: Mapping[str, State] = {"ok": "ok", "degraded": "wait", "trouble": "bad"}
_ROLES: Mapping[str, State] = {"active": "ok", "parallel": "ok", "standby": "ready"}
_WORSE: Sequence[State] = ("bad", "wait", "ok", "ready", "idle")


def marks(status: Status) -> dict[str, Mark]:
    """Return the marks that one gateway knows of: its own parts, and others as far as it sees them."""
    found = dict(_of_gateways(status))
    found |= dict(_of_claims(status))
    found |= dict(_of_parts(status))
    edges = dict(_of_edges(status))
    return found | edges | dict(_of_wires(status, edges))


def own_marks(status: Status) -> dict[str, Mark]:
    """Return the marks of the parts of this gateway, and of the links that they open.

    At an address where several buses of other gateways dial, one row counts all of them: they know better.
    """
    parts = {part["id"] for part in status["parts"]}
    opened = {edge["id"] for edge in (status.get("drawing") or {}).get("edges", ()) if edge["one"] in parts}
    edges = {name: mark for name, mark in _of_edges(status) if name in opened}
    return dict(_of_parts(status)) | edges


def told_marks(status: Status) -> dict[str, Mark]:
    """Return the marks of all parts and edges in a status, also in a `brief` one, which has no picture."""
    return dict(_of_parts(status)) | dict(_of_edges(status))


def shown_marks(found: Mapping[str, Mark]) -> dict[str, dict[str, Any]]:
    """Return marks as pages get them."""
    return {
        name: {
            "state": mark.state, "sign": SIGNS[mark.state], "text": mark.text,
            "lines": list(mark.lines), "ways": list(mark.ways), "word": mark.word,
        }
        for name, mark in found.items()
    }  # fmt: skip


def sign_of(row: Mapping[str, Any]) -> State:
    """Return the state of a mark: a link that is not up is bad after a while only, if that is known."""
    state = row.get("state", "")
    if "down_ms" in row and state != "up":
        return "bad" if is_in_trouble(row) else "wait"
    return worse(_STATES.get(state, "wait"), sign_of_word(judged(row.get("condition", "")).word))


def sign_of_word(word: str) -> State:
    """Return the state of a mark for the word of a verdict; waiting for a word of another version."""
    return _WORDS.get(word, "wait")


def worse(*states: State) -> State:
    """Return the worst of some states of marks."""
    return min(states, key=_WORSE.index)


def _of_gateways(status: Status) -> Iterator[tuple[str, Mark]]:
    """Yield the marks of gateways: each is as well as its own verdict says, as far as that is known here."""
    verdicts = {row["name"]: row for row in status.get("plant", {}).get("gateways", ())}
    verdicts[status["gateway"]] = status.get("health", {})
    for name in status["gateways"]:
        is_here = name == status["gateway"]
        if name in status["silent"] and not is_here:
            yield gateway_id(name), Mark("bad", "not seen from here")
        else:
            yield gateway_id(name), _of_verdict(verdicts.get(name, {}), is_here)


def _of_verdict(verdict: Mapping[str, Any], is_here: bool) -> Mark:
    state = sign_of_word(verdict.get("word") or "ok")
    if state == "ok":
        return Mark(state, "this gateway" if is_here else "lives")
    return Mark(state, "this gateway" if is_here else "lives, not well", fault=verdict["line"])


def _of_claims(status: Status) -> Iterator[tuple[str, Mark]]:
    """Yield the marks of bridges on other gateways, whose claims brokers here hear."""
    for broker in status["brokers"]:
        for lease in broker["leases"]:
            for one in lease["candidates"]:
                if one["part"] and one["name"] != status["gateway"]:
                    state: State = "ok" if one["holding"] else "ready" if one["ready"] else "wait"
                    word = "active" if one["holding"] else "standby" if one["ready"] else "not ready"
                    yield one["part"], Mark(state, word)


def _of_parts(status: Status) -> Iterator[tuple[str, Mark]]:
    """Yield the marks of parts, by the other rows of the status that name the part."""
    hubs, roles, taps, brokers = (
        {row["part"]: row for row in status[key]} for key in ("hubs", "candidates", "taps", "brokers")
    )
    for part in status["parts"]:
        name, state = part["id"], sign_of(part)
        if name in roles:
            yield name, _looped(_role(roles[name], state, part), hubs.get(name))
        elif part["kind"] in ("bus", "bridge"):
            yield name, _looped(_busy(hubs.get(name), state, part), hubs.get(name))
        elif name in taps:
            yield name, _tap(taps[name], state, part)
        else:
            clients = brokers[name]["counts"].get("connections", 0) if part["kind"] == "broker" else None
            lines = () if clients is None else (_peers(clients),)
            yield name, Mark(state, state_word(part) or "up", lines, fault=fault(part))


def _role(role: Mapping[str, Any], state: State, part: Mapping[str, Any]) -> Mark:
    """Return the mark of a bridge in a failover group: its links may be worse than its role."""
    if not role["ready"]:
        why = fault(part) or role.get("cause", "")
        return Mark("bad" if state == "bad" else "wait", role_word(role), fault=why)
    if state in ("bad", "wait"):
        return Mark(state, f"{role_word(role)}, {state_word(part)}", _epoch(role), fault=fault(part))
    return Mark(sign_of_role(role), role_word(role), _epoch(role))


def sign_of_role(role: Mapping[str, Any]) -> State:
    """Return the state of a mark for the role of a gateway in a failover group."""
    is_well = role["ready"] and not role.get("settling")
    return _ROLES.get(role["role"], "wait") if is_well else "wait"


def _epoch(role: Mapping[str, Any]) -> tuple[str, ...]:
    return () if role["role"] == "parallel" else (f"epoch {role['epoch']}",)


def _busy(hub: Mapping[str, Any] | None, state: State, part: Mapping[str, Any]) -> Mark:
    """Return the mark of a bus or bridge: its peers, and the messages that come in each second."""
    rows = [] if hub is None else hub["links"]
    rates = [row["rates"]["received_per_s"] for row in rows if "rates" in row]
    peers = sum(row["live"] for row in rows)
    words = (_peers(peers), *((f"{short(sum(rates))}/s",) if rates else ()))
    return Mark(state, "" if state == "ok" else state_word(part), words, fault=fault(part))


def _looped(mark: Mark, hub: Mapping[str, Any] | None) -> Mark:
    """Return the mark of a bus or bridge that has cut pipes of a loop, or the mark that it has otherwise."""
    cuts = [] if hub is None else hub["cuts"]
    word = ", ".join(filter(None, ("loop", mark.word)))
    return (
        mark._replace(state="bad", word=word, fault=mark.fault or f"cut: {', '.join(cuts)}") if cuts else mark
    )


def _peers(count: int) -> str:
    return amount(count, "peer")


def _tap(tap: Mapping[str, Any], state: State, part: Mapping[str, Any]) -> Mark:
    fill = 100 * tap["waiting_bytes"] // max(1, tap["ring_bytes"])
    lost = (f"lost {tap['lost']}",) if tap["lost"] else ()
    sign = worse(state, "wait") if tap.get("losing") else state
    return Mark(sign, tap["state"], (f"ring {fill} %", *lost), fault=fault(part))


def _of_edges(status: Status) -> Iterator[tuple[str, Mark]]:
    """Yield the marks of edges. Of several links on one edge, the worst counts, and all their rates."""
    by_edge = defaultdict[str, list[Mapping[str, Any]]](list)
    hubs = dict[str, Mapping[str, Any]]()
    for hub, row in ((one, row) for one in status["hubs"] for row in one["links"]):
        for edge in row.get("edges", ()):
            by_edge[edge].append(row)
            hubs[edge] = hub
    begins = {edge["id"]: edge["one"] for edge in (status.get("drawing") or {}).get("edges", ())}
    for edge, rows in by_edge.items():
        worst, at = min(rows, key=lambda row: _WORSE.index(sign_of(row))), hubs[edge]
        if sign_of(worst) == "ok" and all(map(_is_alone, rows)):
            yield edge, Mark("idle", "nobody has dialled", counts=_counts(rows))
            continue
        # A journal counts what its link does.
        crossing = _crossing([row for row in rows if "kept" not in row])
        lines = _lines(at["name"], crossing)
        ways = crossing if begins.get(edge, at.get("part")) == at.get("part") else crossing[::-1]
        yield edge, Mark(sign_of(worst), state_word(worst), lines, _counts(rows), ways, fault(worst))


def _is_alone(row: Mapping[str, Any]) -> bool:
    """Return whether a row is of a listener where nobody is: what it leads to cannot be seen by it."""
    return row.get("label", "").startswith("listen ") and not row["live"]


def _crossing(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the rates of what comes to a hub by some links, and of what goes from there; none if unknown."""
    rates = [row["rates"] for row in rows if "rates" in row]
    both = [sum(one[key] for one in rates) for key in ("received_per_s", "sent_per_s")] if rates else []
    return tuple(f"{short(rate)}/s" for rate in both)


def _lines(hub: str, crossing: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{way} {hub} {rate}" for way, rate in zip(("to", "from"), crossing, strict=False))


def _counts(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return what the links of an edge have dropped, rejected and filtered since their start."""
    if not any(row["dropped"] or row["rejected"] for row in rows):  # as of most
        return ()
    sums = Stats()
    for row in rows:
        for reason, count in row["dropped"].items():
            sums.drop(reason, count)
        for reason, count in row["rejected"].items():
            sums.reject(reason, count)
    told = Parted(sums.dropped, sums.rejected)
    named = ("dropped ", told.dropped), ("rejected ", told.rejected), ("filtered: ", told.filtered)
    return tuple(f"{how}{text}" for how, text in named if text)


def _of_wires(status: Status, edges: Mapping[str, Mark]) -> Iterator[tuple[str, Mark]]:
    """Yield the marks of wires: each is like the best link of this gateway to it."""
    drawing = status.get("drawing")
    by_wire = defaultdict[str, list[Mark]](list)
    wires = {node["id"] for node in drawing["nodes"] if node["kind"] == "wire"} if drawing else set()
    for edge in drawing["edges"] if drawing else ():
        if edge["other"] in wires and edge["id"] in edges:
            by_wire[edge["other"]].append(edges[edge["id"]])
    for wire, found in by_wire.items():
        best = max(found, key=lambda mark: _WORSE.index(mark.state))
        yield wire, Mark(best.state, best.word, fault=best.fault)
