"""Of every frame that entered: did each other segment get it exactly once, and its own not at all?

Two steps. All frames are summed up in one pass, with numbers only; what they usually add up to is learned
from them (`pipeline.expected`), and frames that add up to anything else are *suspects*. Only these, a few
in a thousand, are looked at row by row, and explained.

A frame is known by its envelope where every row has one. In a capture where some rows have none it is
known by its content: equal contents within a window are one *episode*, in which counts are compared, in
order.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F

from pipeline import failovers
from pipeline.expected import SEGMENTS_A_WORD, Expected, learn
from pipeline.frames import (
    BRIDGE,
    content,
    envelope,
    first_token,
    frames,
    local_table,
    on_bridge,
    places,
    received,
    sent,
)
from pipeline.schema import Direction, Kind, Verdict

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

WINDOW_MS: Final = 2000
_SENT_UNIT: Final = 1 << 20  # in a frame's sum of rows: received + sent << 20 + enveloped << 40
_ENVELOPED_UNIT: Final = 1 << 40

IN_BRIDGE: Final = "in bridge"
AT_SENDER: Final = "at the sender"
ON_THE_WAY: Final = "on the way"
NO_BRIDGE: Final = "no bridge"
UPSTREAM: Final = "upstream"


class Places(NamedTuple):
    """Numbers of segments (by name) and hubs (by gateway and name), and who puts frames onto which
    segment."""

    segments: tuple[str, ...]
    hubs: tuple[tuple[str, str], ...]
    carriers: tuple[tuple[int, int], ...]  # (hub, segment)
    wires: tuple[int, ...]  # segments between bridges of different names
    by_envelope: bool

    @property
    def words(self) -> int:
        return max(1, -(-len(self.segments) // SEGMENTS_A_WORD))


class Audit(NamedTuple):
    """`summary`: findings by kind, stage and place. `findings`: one row for each bad frame and segment.

    `ledger`: what the bridges' own ledgers say they dropped. `totals`: frames, by how they were matched.
    `capture`: what the recorders themselves missed.
    """

    totals: "DataFrame"
    summary: "DataFrame"
    findings: "DataFrame"
    ledger: "DataFrame"
    capture: "DataFrame"


def learn_places(rows: "DataFrame") -> Places:
    """One pass over four columns, into a table that is collected."""
    return as_places(places(rows).collect())


def as_places(found: "list[Row]") -> Places:
    """From the rows of `frames.places`."""
    segments = tuple(sorted({row.bus for row in found}))
    hubs = tuple(sorted({(row.gateway, row.hub) for row in found}))
    number = {name: n for n, name in enumerate(segments)}
    bridges = [row for row in found if row.hub.startswith(BRIDGE)]
    puts = {(row.hub, row.bus) for row in bridges if row.dir == Direction.TX}
    takes = {(row.hub, row.bus) for row in bridges if row.dir == Direction.RX}
    wires = {bus for hub, bus in puts if any(b == bus and h != hub for h, b in takes)}
    carriers = {(hubs.index((r.gateway, r.hub)), number[r.bus]) for r in bridges if r.dir == Direction.TX}
    enveloped = all(row.rows == row.enveloped for row in found)
    return Places(segments, hubs, tuple(sorted(carriers)), tuple(sorted(number[w] for w in wires)), enveloped)


def keyed(rows: "DataFrame", at: Places) -> "DataFrame":
    """Rows that tell of a frame entering, received by a bridge or put onto a segment by one, with its
    `key`."""
    bits = [(name, n, 1 << n % SEGMENTS_A_WORD) for n, name in enumerate(at.segments)]
    numbers = local_table(
        rows.sparkSession,
        {"bus": str, "segment": int, "heard_bit": int, "sent_bit": int},
        [(name, n, bit, bit << SEGMENTS_A_WORD) for name, n, bit in bits],
    )
    key = envelope() if at.by_envelope else content()
    wanted = frames(rows).where(received() | on_bridge())
    return wanted.join(F.broadcast(numbers), "bus").withColumn("key", key)


def sums(keyed_rows: "DataFrame", at: Places) -> "DataFrame":
    """One row for each key: `words`, `rows`, `token` (see `pipeline.expected`), first and last time."""
    bit = F.when(sent(), F.col("sent_bit")).otherwise(F.col("heard_bit"))
    unit = F.when(sent(), F.lit(_SENT_UNIT)).otherwise(F.lit(1)) + F.when(
        F.col("origin").isNull(), F.lit(0)
    ).otherwise(F.lit(_ENVELOPED_UNIT))
    masks = [F.bit_or(_in_word(bit, n, at.words)).alias(f"word{n}") for n in range(at.words)]
    return keyed_rows.groupBy("key").agg(
        *masks,
        F.sum(unit).alias("rows"),
        F.max(first_token()).alias("token"),
        F.min("ts_ns").alias("first_ns"),
        F.max("ts_ns").alias("last_ns"),
    )


def _in_word(bit: "Column", number: int, words: int) -> "Column":
    if words == 1:
        return bit
    here = (F.col("segment") / SEGMENTS_A_WORD).cast("int") == number
    return F.when(here, bit).otherwise(F.lit(0).cast("bigint"))


def signatures(frame_sums: "DataFrame", at: Places) -> "DataFrame":
    """How many keys add up to the same; the few rows that `pipeline.expected.learn` takes."""
    columns = [*(f"word{n}" for n in range(at.words)), "rows", "token"]
    return frame_sums.groupBy(*columns).agg(F.count(F.lit(1)).alias("count"))


def suspects(frame_sums: "DataFrame", expected: Expected, at: Places) -> "DataFrame":
    """Keys of frames that do not add up to what is typical."""
    names = [*(f"word{n}" for n in range(at.words)), "rows", "token"]
    table = [[*one.words, one.rows, one.token] for one in expected.typical]
    typical = local_table(frame_sums.sparkSession, dict.fromkeys(names, int), table)
    return frame_sums.join(F.broadcast(typical), names, "left_anti").select(
        "key", "first_ns", "last_ns", "token"
    )


def episodes(keyed_rows: "DataFrame", suspect: "DataFrame", window_ns: int) -> "DataFrame":
    """The suspects' rows, equal contents told apart: a new `episode` after silence for the window."""
    picked = keyed_rows.join(suspect.select("key"), "key", "left_semi")
    in_time = Window.partitionBy("key").orderBy("ts_ns")
    fresh = F.col("ts_ns") - F.lag("ts_ns").over(in_time) > window_ns
    return picked.withColumn("fresh", F.coalesce(fresh.cast("int"), F.lit(0))).withColumn(
        "episode", F.sum("fresh").over(in_time)
    )


def counted(rows: "DataFrame", at: Places) -> "DataFrame":
    """For each episode, hub, segment and direction: `n` messages, of which the busiest peer's count.

    A segment with several peers (I2C targets, dialled-in boards) gets a frame once for each of them: that
    is once.
    """
    hubs = local_table(
        rows.sparkSession,
        {"gateway": str, "hub": str, "hub_number": int},
        [(g, h, n) for n, (g, h) in enumerate(at.hubs)],
    )
    by_peer = rows.groupBy(
        "key", "episode", "gateway", "hub", "segment", "dir", F.xxhash64("peer").alias("peer")
    ).agg(
        F.count(F.lit(1)).alias("n"),
        F.min("ts_ns").alias("first_ns"),
        F.max("ts_ns").alias("last_ns"),
        F.max(first_token()).alias("token"),
        F.count("origin").alias("enveloped"),
        F.max("origin").alias("origin"),
        F.max("seq").alias("seq"),
    )
    of_hub = by_peer.groupBy("key", "episode", "gateway", "hub", "segment", "dir").agg(
        F.when(sent(), F.max("n")).otherwise(F.sum("n")).alias("n"),
        F.min("first_ns").alias("first_ns"),
        F.max("last_ns").alias("last_ns"),
        F.max("token").alias("token"),
        F.sum("enveloped").alias("enveloped"),
        F.sum("n").alias("all"),
        F.max("origin").alias("origin"),
        F.max("seq").alias("seq"),
    )
    return of_hub.join(F.broadcast(hubs), ["gateway", "hub"])


def by_segment(counts: "DataFrame") -> "DataFrame":
    """For each episode and segment: `delivered` by bridges, `heard` by the one who heard most, when first."""
    return counts.groupBy("key", "episode", "segment").agg(
        F.sum(F.when(sent(), F.col("n")).otherwise(F.lit(0))).alias("delivered"),
        F.max(F.when(received(), F.col("n")).otherwise(F.lit(0))).alias("heard"),
        F.min(F.when(received(), F.col("first_ns"))).alias("heard_ns"),
        F.max("token").alias("token"),
    )


def homes(segments: "DataFrame", expected: Expected) -> "DataFrame":
    """Where each episode's frames came from, and how many: heard there, and not put there by a bridge.

    Where all that was heard was also put there (a self-echo), the first of the known homes that heard it.
    """
    known = sorted({home for home, _ in expected.routes})
    late = F.when(F.col("segment").isin(known), F.lit(0)).otherwise(F.lit(1 << 60))
    surplus = F.when(F.col("heard") > F.col("delivered"), F.col("heard") - F.col("delivered")).otherwise(
        F.lit(0)
    )
    of_episode = Window.partitionBy("key", "episode")
    ranked = (
        segments.where("heard > 0")
        .withColumn("entered", surplus)
        .withColumn("order", F.col("heard_ns") + late)
        .withColumn("entered_all", F.sum("entered").over(of_episode))
        .withColumn("earliest", F.min("order").over(of_episode))
    )
    chosen = F.when((F.col("entered_all") == 0) & (F.col("order") == F.col("earliest")), F.lit(1)).otherwise(
        F.col("entered")
    )
    return (
        ranked.withColumn("entered", chosen)
        .where("entered > 0")
        .select(
            "key",
            "episode",
            F.col("segment").alias("home"),
            "entered",
            "token",
            F.col("heard_ns").alias("entered_ns"),
        )
    )


def balance(segments: "DataFrame", home: "DataFrame", expected: Expected) -> "DataFrame":
    """`difference` of delivered and expected for each episode and segment, where it is not 0."""
    routes = [[h, t, s] for (h, t), reached in expected.routes.items() for s in reached]
    table = local_table(segments.sparkSession, {"home": int, "token": int, "segment": int}, routes)
    wanted = (
        home.join(F.broadcast(table), ["home", "token"])
        .groupBy("key", "episode", "segment")
        .agg(F.sum("entered").alias("wanted"))
    )
    own = home.select("key", "episode", F.col("home").alias("segment"), F.lit(1).alias("is_home"))
    keys = ["key", "episode", "segment"]
    return (
        segments.select(*keys, "delivered")
        .join(wanted, keys, "full_outer")
        .join(own, keys, "left")
        .withColumn("difference", F.coalesce("delivered", F.lit(0)) - F.coalesce("wanted", F.lit(0)))
        .where("difference <> 0")
        .select(*keys, "difference", F.coalesce("is_home", F.lit(0)).alias("is_home"))
    )


def evidence(wrong: "DataFrame", counts: "DataFrame", segments: "DataFrame", at: Places) -> "DataFrame":
    """For each fault and hub: what it `held` of its frames (`heard`: where a bridge had put them), what
    it `put` onto the segment, and `passed` onto others."""
    carriers = local_table(
        wrong.sparkSession,
        {"hub_number": int, "target": int, "carries": int},
        [(h, s, 1) for h, s in at.carriers],
    )
    bridges = [n for n, (_, hub) in enumerate(at.hubs) if hub.startswith(BRIDGE)]
    here = F.col("segment") == F.col("target")
    n = F.col("n")
    return (
        wrong.withColumnRenamed("segment", "target")
        .join(
            counts.join(
                segments.select("key", "episode", "segment", "delivered"), ["key", "episode", "segment"]
            ),
            ["key", "episode"],
        )
        .join(F.broadcast(carriers), ["hub_number", "target"], "left")
        .groupBy("key", "episode", "target", "difference", "is_home", "hub_number", "carries")
        .agg(
            F.sum(F.when(received() & ~here, n).otherwise(0)).alias("held"),
            F.sum(F.when(received() & ~here & (F.col("delivered") > 0), n).otherwise(0)).alias("heard"),
            F.sum(F.when(sent() & here, n).otherwise(0)).alias("put"),
            F.sum(F.when(sent() & ~here & F.col("segment").isin(list(at.wires)), n).otherwise(0)).alias(
                "passed"
            ),
            F.min(F.when(received(), F.col("first_ns"))).alias("ts_ns"),
            F.max("last_ns").alias("last_ns"),
            *(F.max(name).alias(name) for name in ("origin", "seq", "token")),
            *(F.sum(name).alias(name) for name in ("enveloped", "all")),
        )
        .withColumn("bridge", F.col("hub_number").isin(bridges))
    )


def explained(found: "DataFrame") -> "DataFrame":
    """One row for each fault: how much of the loss is whose. Of a loss, in this order: what a carrier of
    the segment held and did not put; what was sent towards the carriers and did not come; what no bridge
    took; the rest was lost before (and is told there)."""
    hub, carries = F.col("hub_number"), F.col("carries").isNotNull()
    short = F.greatest(F.col("held") - F.col("put"), F.lit(0))
    flags = found.groupBy("key", "episode", "target", "difference", "is_home").agg(
        F.sum(F.when(carries, short).otherwise(0)).alias("short"),
        F.max(F.when(carries & (short > 0), hub)).alias("holder"),
        F.sum("passed").alias("passed"),
        F.max(F.when(F.col("passed") > 0, hub)).alias("sender"),
        F.max(F.when(F.col("put") > 0, hub)).alias("putter"),
        F.sum(F.when(carries, F.col("held")).otherwise(0)).alias("came"),
        F.sum(F.when(F.col("bridge") & ~carries, F.col("heard")).otherwise(0)).alias("others"),
        F.max(F.when(~F.col("bridge"), F.col("held")).otherwise(0)).alias("entered"),
        F.sum(F.when(F.col("bridge"), F.col("held") - F.col("heard")).otherwise(0)).alias("taken"),
        *(F.max(name).alias(name) for name in ("origin", "seq", "token")),
        *(F.sum(name).alias(name) for name in ("enveloped", "all")),
        F.min("ts_ns").alias("ts_ns"),
        F.max("last_ns").alias("last_ns"),
    )
    lost = -F.col("difference")
    in_bridge = F.least(lost, F.col("short"))
    on_way = F.least(lost - in_bridge, F.greatest(F.col("passed") - F.col("came"), F.lit(0)))
    rest = lost - in_bridge - on_way
    untaken = F.least(rest, F.greatest(F.col("entered") - F.col("taken"), F.lit(0)))
    sender_stage = F.when(F.col("others") > 0, F.lit(ON_THE_WAY)).otherwise(F.lit(AT_SENDER))
    parts = F.array(
        _part(F.lit(IN_BRIDGE), F.greatest(F.col("difference"), F.lit(0)), F.col("putter")),
        _part(F.lit(IN_BRIDGE), in_bridge, F.col("holder")),
        _part(sender_stage, on_way, F.when(F.col("others") == 0, F.col("sender"))),
        _part(F.lit(NO_BRIDGE), untaken, F.lit(None)),
        _part(F.lit(UPSTREAM), rest - untaken, F.lit(None)),
    )
    return flags.withColumn("part", F.explode(parts)).where("part.count > 0")


def _part(stage: "Column", count: "Column", hub: "Column") -> "Column":
    return F.struct(
        F.when(count > 0, stage).alias("stage"),
        count.cast("bigint").alias("count"),
        hub.cast("bigint").alias("hub_number"),
    )


def named(faults: "DataFrame", at: Places) -> "DataFrame":
    """Findings as users read them: names for numbers, kinds for signs."""
    spark = faults.sparkSession
    names = local_table(spark, {"target": int, "segment": str}, list(enumerate(at.segments)))
    table = [(n, gateway, hub) for n, (gateway, hub) in enumerate(at.hubs)]
    hubs = local_table(spark, {"hub_number": int, "gateway": str, "hub": str}, table)
    surplus = F.when(F.col("is_home") == 1, F.lit("echo")).otherwise(F.lit("duplicate"))
    kind = F.when(F.col("difference") < 0, F.lit("lost")).otherwise(surplus)
    return (
        faults.select("*", "part.*")
        .join(F.broadcast(names), "target")
        .join(F.broadcast(hubs), "hub_number", "left")
        .select(
            "ts_ns", kind.alias("kind"), "stage", "segment", "gateway", "hub", "count",
            matched().alias("matched"), "origin", "seq", "token", "key", "episode", "last_ns",
        )
    )  # fmt: skip


def matched() -> "Column":
    """How a frame's rows were brought together: by `enveloped` of `all` of them."""
    return (
        F.when(F.col("enveloped") == 0, F.lit("content"))
        .when(F.col("enveloped") == F.col("all"), F.lit("envelope"))
        .otherwise(F.lit("content, envelope on trunks"))
    )


def in_gaps(findings: "DataFrame", gaps: "DataFrame", slack_ns: int = 10_000_000) -> "DataFrame":
    """Losses while nobody put anything onto the segment are due to that: their stage becomes NO_BRIDGE."""
    when = gaps.select(
        F.col("bus").alias("segment"),
        (F.col("start_ns") - slack_ns).alias("from_ns"),
        (F.col("end_ns") + slack_ns).alias("to_ns"),
    ).withColumn("dead", F.lit(True))
    inside = (
        (findings.segment == when.segment)
        & (findings.ts_ns <= when.to_ns)
        & (findings.last_ns >= when.from_ns)
    )
    joined = findings.join(
        F.broadcast(when),
        inside & (findings.kind == "lost") & findings.stage.isin(ON_THE_WAY, AT_SENDER),
        "left",
    )
    dead = F.col("dead").isNotNull()
    return joined.select(
        *(findings[name] for name in findings.columns if name not in ("stage", "gateway", "hub")),
        F.when(dead, F.lit(NO_BRIDGE)).otherwise(findings.stage).alias("stage"),
        F.when(~dead, findings.gateway).alias("gateway"),
        F.when(~dead, findings.hub).alias("hub"),
    )


def summary(findings: "DataFrame") -> "DataFrame":
    """By kind, stage, segment, bridge and way of matching: how many, from when to when."""
    return (
        findings.groupBy("kind", "stage", "segment", "gateway", "hub", "matched")
        .agg(F.sum("count").alias("count"), F.min("ts_ns").alias("first_ns"), F.max("ts_ns").alias("last_ns"))
        .orderBy("kind", "stage", "segment", "gateway", "hub", "matched")
    )


def ledger(rows: "DataFrame") -> "DataFrame":
    """What the recorders copied from the bridges' ledgers: drops and rejects by pipe and reason."""
    return (
        rows.where((F.col("kind") == Kind.LEDGER.value) & (F.col("verdict") != Verdict.OK.value))
        .groupBy("gateway", "hub", "bus", "peer", "dir", "reason")
        .agg(F.sum("count").alias("count"), F.min("ts_ns").alias("first_ns"), F.max("ts_ns").alias("last_ns"))
        .orderBy("gateway", "hub", "bus", "peer", "dir", "reason")
    )


def uncaptured(rows: "DataFrame") -> "DataFrame":
    """What the recorders lost themselves: messages they say they missed, and holes in their numbering."""
    dense = F.max("cap_seq") - F.min("cap_seq") + 1 - F.count(F.lit(1))
    missed = F.sum(F.when(F.col("kind") == Kind.GAP.value, F.col("count")).otherwise(F.lit(0)))
    return rows.groupBy("gateway", "boot").agg(
        F.count(F.lit(1)).alias("rows"), missed.alias("missed"), dense.alias("holes"),
        F.min("ts_ns").alias("first_ns"), F.max("ts_ns").alias("last_ns"),
    ).orderBy("gateway", "boot")  # fmt: skip


def agreement(findings: "DataFrame", ledgers: "DataFrame") -> "DataFrame":
    """For each bridge and segment: frames that the traffic misses there, beside what its ledger dropped
    there.

    `traffic`: lost in the bridge on the way to the segment, or at the sender (nobody heard what it sent).
    What a queue drops after it was handed over is in the ledger alone where nobody listens behind it.
    """
    at_sender = (
        findings.where((F.col("kind") == "lost") & (F.col("stage") == AT_SENDER))
        .groupBy("gateway", "hub", "key", "ts_ns").agg(F.max("count").alias("count"))
        .groupBy("gateway", "hub").agg(F.sum("count").alias("at_sender"))
    )  # fmt: skip
    dropped = ledgers.where("dir = 1").groupBy("gateway", "hub").agg(F.sum("count").alias("ledger"))
    inside = (
        findings.where((F.col("kind") == "lost") & (F.col("stage") == IN_BRIDGE))
        .groupBy("gateway", "hub").agg(F.sum("count").alias("in_bridge"))
    )  # fmt: skip
    keys = ["gateway", "hub"]
    joined = dropped.join(at_sender, keys, "full_outer").join(inside, keys, "full_outer")
    return joined.na.fill(0, ["ledger", "at_sender", "in_bridge"]).orderBy(*keys)


def check(rows: "DataFrame") -> tuple[Places, Expected, "DataFrame", "DataFrame"]:
    """The first step: places, what is expected, all frames' rows, and the suspects among their keys.

    Two small tables are collected on the way: the places, and the sums that frames have.
    """
    at = learn_places(rows)
    of_frames = keyed(rows, at)
    frame_sums = sums(of_frames, at)
    expected = learn(signatures(frame_sums, at).collect(), at.words)
    return at, expected, of_frames, suspects(frame_sums, expected, at)


def audit(rows: "DataFrame", window_ms: int = WINDOW_MS) -> Audit:
    """All of it. What the suspects add up to is small, used often, and so kept (`persist`)."""
    at, expected, of_frames, suspect = check(rows)
    counts = counted(episodes(of_frames, suspect, window_ms * 1_000_000), at).persist()
    segments = by_segment(counts).persist()
    home = homes(segments, expected).persist()
    wrong = balance(segments, home, expected).persist()
    faults = named(explained(evidence(wrong, counts, segments, at)), at)
    findings = in_gaps(faults, failovers.gaps(rows)).persist()
    return Audit(totals(expected, home), summary(findings), findings, ledger(rows), uncaptured(rows))


def totals(expected: Expected, home: "DataFrame") -> "DataFrame":
    """Frames that entered: those without fault, by what they add up to, and the suspects counted one by
    one."""
    clean = sum(one.frames for one in expected.typical)
    enveloped = sum(one.frames for one in expected.typical if _is_enveloped(one.rows))
    none = sum(one.frames for one in expected.typical if not one.rows // _ENVELOPED_UNIT)
    return home.agg(F.coalesce(F.sum("entered"), F.lit(0)).alias("looked_at")).select(
        (F.col("looked_at") + clean).alias("frames"),
        F.lit(clean).alias("typical"),
        "looked_at",
        F.lit(enveloped).alias("by_envelope"),
        F.lit(none).alias("by_content"),
        F.lit(clean - enveloped - none).alias("by_both"),
    )


def _is_enveloped(rows: int) -> bool:
    return rows // _ENVELOPED_UNIT == rows % _SENT_UNIT + rows // _SENT_UNIT % _SENT_UNIT
