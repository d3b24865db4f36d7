"""The snapshot: everything there is to see of one running process, as a JSON document (docs/status.md)."""

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from appliance.status.candidates import claims, of_lease, roles
from appliance.status.conditions import judged
from appliance.status.health import WORDS
from appliance.status.labels import Labels, titles
from appliance.status.rates import RowKey
from appliance.status.rows import Far, LinkRow
from appliance.status.shape import MOST, VERSION, Record
from appliance.status.sums import Sums, counts_of, far_of
from appliance.status.values import values_of
from appliance.status.view import Around, Besides, Sampled, ShownPart, View
from bus.hub import Hub, LinkView, Pipe, chain
from bus.ledger import Account
from bus.names import table_of
from bus.report import Report
from bus.steps import Steps, finish, portions
from bus.transports.budget import PROCESS
from bus.watch.watched import WatchedHub

if TYPE_CHECKING:  # most gateways have neither, and start faster without
    from devices.tap.recorder import Recorder

PIPES: Final = 64  # of one hub
_PARTS: Final = 10  # of one step
_WORST_FIRST: Final = ("waiting", "opening", "closed", "up")
_ByHub = defaultdict[Hub, dict[str, list[LinkRow]]]
Downs = Mapping[RowKey, int]
"""The time for which each link has not been up, in milliseconds."""


def snapshot(view: View, pipes: int = PIPES) -> Record:
    """Return the status of a process now. Counters are in messages unless a name says bytes.

    `pipes` is the most pipes that are listed of each hub.
    """
    return finish(steps(view, pipes))


def steps(view: View, pipes: int = PIPES) -> Steps[Record]:
    """Make the status as `snapshot` does. What it says of one part is of one moment."""
    parts, besides, sampled = list(view.parts()), view.besides(), view.sampled()
    reports = [(part.id, service.report()) for part in parts for service in part.services]
    reports += [("", service.report()) for service in besides.services]
    around = view.around(claims(report for _, report in reports))
    yield
    rows = [*(row for part in parts for row in part.rows), *besides.rows]
    shown = _Shown(sampled, pipes, Labels(rows, titles(parts)), _by_hub(rows))
    yield
    for some in portions(parts, _PARTS):
        for part in some:
            shown.add_part(part)
        yield
    shown.add_besides(besides)
    found = _process(view, around) | {
        "parts": shown.parts,
        "ends": shown.ends,
        "links": shown.links,
        "hubs": shown.hubs,
        **shown.sums.as_records(),
        "transit": list(sampled.transit),
        "brokers": [_service(part, report, around.copies) for part, report in reports],
        "candidates": list(roles(parts)),
        "taps": [_tap(part.id, recorder) for part in parts for recorder in part.recorders],
        **values_of((report for _, report in reports), table_of(tuple(around.names)), around.quantities),
        "memory": {"held_bytes": PROCESS.held_bytes, "limit_bytes": PROCESS.limit_bytes},
        "names": list(around.names),
        "events": [event._asdict() for event in sampled.events],
    }
    found |= {"alarms": list(sampled.alarms)} if sampled.alarms else {}
    found |= {} if sampled.health is None else {"health": sampled.health.as_record()}
    found |= {} if around.drawing is None else {"drawing": around.drawing}
    several = view.plant is not None and len(around.gateways) > 1
    return found | ({"plant": view.plant.shown(found)} if several and view.plant is not None else {})


def _process(view: View, around: Around) -> Record:
    """Return what a status says of the process itself, and of what is around it."""
    return {
        "version": VERSION,
        "time_ns": time.time_ns(),
        "started_ns": view.started_ns,
        "pid": os.getpid(),
        "product": view.product,
        "program": view.program,
        "topology": view.name,
        "gateway": view.gateway,
        "file": around.digest,
        "gateways": dict(around.gateways),
        "silent": dict(around.silent),
        "page": around.page,
        "certificates": {path: min(int(span.end_s * 1e9), MOST) for path, span in around.lasting.items()},
    }


class _Shown:
    """The records of parts so far, and of what belongs to none. At most `most` pipes are listed of a hub."""

    def __init__(self, sampled: Sampled, most: int, labels: Labels, rows: _ByHub) -> None:
        self._sampled, self._most, self._labels, self._rows = sampled, most, labels, rows
        self.parts, self.ends, self.links, self.hubs = (list[Record]() for _ in range(4))
        self.sums = Sums(sampled.rates)

    def add_part(self, part: ShownPart) -> None:
        self.parts.append(part_row(part, self._sampled.down_ms))
        self.links += map(_link, part.links)
        self._add_ends(part.rows)
        self._add_hubs(part.hubs, part.id, part.kind)

    def add_besides(self, besides: Besides) -> None:
        self.links += (_link(row.link) for row in besides.rows)
        self._add_ends(besides.rows)
        self._add_hubs(besides.hubs, "", "")

    def _add_ends(self, rows: Iterable[LinkRow]) -> None:
        self.ends += (edge for row in rows for edge in edge_rows(row, self._sampled.down_ms))

    def _add_hubs(self, hubs: Iterable[Hub], part: str, kind: str) -> None:
        for hub in hubs:
            own, accounts = self._rows[hub], hub.accounts()
            fars = {name: far_of(own.get(name, ()), kind) for name in sorted({*accounts, *own})}
            for name, account in accounts.items():
                self.sums.add(fars[name], (hub.name, name), account)
            self.hubs.append(_hub(part, hub, accounts, own, self._sampled, self._most, self._labels, fars))


def brief(
    parts: Iterable[ShownPart], accounts: Mapping[str, Mapping[str, Account]], sampled: Sampled
) -> Record:
    """Return as much of a status as the marks of the parts need, and of the links that they dial or open.

    `accounts` are those of links, by hub and name. Of a link between buses, who dials knows more.
    """
    shown = list(parts)
    brokers = [
        (part.id, service.report()) for part in shown if part.kind == "broker" for service in part.services
    ]
    by_hub = _by_hub(row for part in shown for row in part.rows)
    return {
        "parts": [part_row(part, sampled.down_ms) for part in shown],
        "candidates": list(roles(shown)),
        "taps": [_tap(part.id, recorder) for part in shown for recorder in part.recorders],
        "brokers": [{"part": part, "counts": dict(report.counts)} for part, report in brokers],
        "hubs": [
            _brief_hub(part.id, hub, by_hub[hub], accounts.get(hub.name, {}), sampled)
            for part in shown
            for hub in part.hubs
        ],
    }


def _brief_hub(
    part: str, hub: Hub, rows: Mapping[str, list[LinkRow]], accounts: Mapping[str, Account], sampled: Sampled
) -> Record:
    """Return a hub with a row for each account and link, but without the edges of listeners."""
    links = list[Record]()
    for link in {*accounts, *rows}:
        own = rows.get(link, ())
        row = _row(link, accounts.get(link, Account()), own, (hub.name, link), sampled)
        links.append(row | {"edges": []} if any(one.label.startswith("listen") for one in own) else row)
    return {"name": hub.name, "part": part, "cuts": _cuts(hub), "links": links}


def _cuts(hub: Hub) -> list[str]:
    """Return the names of the pipes that carried a loop, and are cut now."""
    return [cut.pipe.name for cut in hub.cuts] if isinstance(hub, WatchedHub) else []


def part_row(part: ShownPart, down_ms: Downs) -> Record:
    """Return a part with the worst state and condition of its links, and the fault of the first in it."""
    state = _state(part.rows, down_ms) or {"state": "", "condition": "", "fault": ""}
    fault = state["fault"] if state["state"] != "up" else ""
    down = {key: state[key] for key in ("down_ms",) if key in state}
    return {
        "id": part.id, "kind": part.kind, "name": part.name, "state": state["state"],
        "condition": state["condition"], "fault": fault,
    } | down  # fmt: skip


def _state(rows: Sequence[LinkRow], down_ms: Downs) -> Record:
    """Return the state, condition and fault of the worst of some links; nothing if there are none.

    For a link that is not up, a process with a monitor also says for how long.
    """
    if not rows:
        return {}
    worst = rows[0] if len(rows) == 1 else min(rows, key=_rank)
    age_ms = down_ms.get((worst.hub.name, worst.name)) if worst.link.state != "up" else None
    found = {"state": worst.link.state, "condition": worst.link.condition, "fault": worst.fault}
    return found if age_ms is None else found | {"down_ms": age_ms}


def _rank(row: LinkRow) -> tuple[int, int]:
    """Return a number that is the smaller the worse the state of a link is, and one for its condition."""
    return _WORST_FIRST.index(row.link.state), -WORDS.index(judged(row.link.condition).word)


def edge_rows(row: LinkRow, down_ms: Downs) -> Iterator[Record]:
    """Yield a row for each edge of a link in the picture."""
    for edge in row.edges:
        yield {"id": edge, "hub": row.hub.name, "row": row.name} | _state([row], down_ms)


def _link(link: LinkView) -> Record:
    known = {"state": link.state, "condition": link.condition, "fault": link.fault, "losses": link.losses}
    return {"name": link.name} | {name: value for name, value in known.items() if value}


def _by_hub(rows: Iterable[LinkRow]) -> _ByHub:
    """Return the rows by their hub and name. Links of one name on one hub share a row."""
    found = defaultdict[Hub, dict[str, list[LinkRow]]](dict)
    for row in rows:
        found[row.hub].setdefault(row.name, []).append(row)
    return found


def _hub(
    part: str,
    hub: Hub,
    accounts: Mapping[str, Account],
    rows: Mapping[str, list[LinkRow]],
    sampled: Sampled,
    most: int,
    labels: Labels,
    fars: Mapping[str, Far],
) -> Record:
    """Return a hub with a row for each name in `fars`: of accounts, and of links that never opened."""
    pipes = nlargest(most, hub.pipes, key=lambda pipe: pipe.stats.received + pipe.stats.sent)
    links = [
        _row(name, accounts.get(name, Account()), rows.get(name, ()), (hub.name, name), sampled)
        | {"label": labels.of(hub.name, name), "far": far}
        for name, far in fars.items()
    ]
    return {
        "name": hub.name,
        "part": part,
        "cuts": _cuts(hub),
        "links": links,
        "pipes": [counts for pipe in pipes for counts in _pipe(pipe)],
        "more_pipes": len(hub.pipes) - len(pipes),
    }


def _row(name: str, account: Account, rows: Sequence[LinkRow], key: RowKey, sampled: Sampled) -> Record:
    """Return the row of a link: totals since the start, which never fall, and its state now."""
    rate = sampled.rates.get(key)
    found = {"name": name, "live": account.live, "gone": account.gone} | counts_of(account.stats)
    if rate is not None:
        found["rates"] = rate._asdict()
    if rows:
        losses, edges = sum(row.link.losses for row in rows), [edge for row in rows for edge in row.edges]
        found |= _state(rows, sampled.down_ms) | {"losses": losses, "edges": edges}
        kept = [dict(end) for row in rows for end in row.kept]
        found |= {"kept": kept} if kept else {}
    return found


def _pipe(pipe: Pipe) -> list[Record]:
    return [{"name": one.name} | counts_of(one.stats) for one in chain(pipe)]


def _service(part: str, report: Report, copies: Mapping[tuple[str, str], str]) -> Record:
    leases = [lease._asdict() | {"candidates": of_lease(lease, copies)} for lease in report.leases]
    return {
        "name": report.name, "kind": report.kind, "part": part, "urls": list(report.urls),
        "counts": dict(report.counts), "rejected": dict(report.rejected), "leases": leases, **report.lists,
    }  # fmt: skip


def _tap(part: str, tap: "Recorder") -> Record:
    return {
        "name": tap.name, "part": part, "state": tap.state, "fault": tap.fault, "losses": tap.losses,
        "captured": tap.captured, "lost": tap.lost, "losing": tap.is_losing, "ring_bytes": tap.ring_bytes,
        "waiting_bytes": tap.waiting_bytes, **tap.counts,
    }  # fmt: skip
