"""The explanation of a frame's fault, from hand-made counts: two segments, a wire between two bridges."""

from pipeline.analysis.audit.explain import Fault, Seen, explain
from pipeline.analysis.shared.places import Paths

A, B = ("gw-a", "bridge a"), ("gw-b", "bridge b")
LEFT, RIGHT = ("gw-a", "bus left"), ("gw-b", "bus right")
RX, TX = 0, 1
CARRIES = frozenset({(A, "wire"), (A, "left"), (B, "right"), (B, "wire")})
WAYS = Paths(CARRIES, CARRIES, frozenset({"wire"}))
ROUTES = {("left", 7): frozenset({"wire", "right"})}
ENTERED = [Seen(LEFT, "left", RX, 1), Seen(A, "left", RX, 1)]
CROSSED = [*ENTERED, Seen(A, "wire", TX, 1)]
CAME = [*CROSSED, Seen(B, "wire", RX, 1)]
FINE = [*CAME, Seen(B, "right", TX, 1), Seen(RIGHT, "right", RX, 1)]


def faults(*seen: Seen, first: str = "left") -> list[Fault]:
    return explain(seen, first, 7, ROUTES, WAYS)[1]


def test_a_frame_that_got_everywhere_once() -> None:
    assert explain(FINE, "left", 7, ROUTES, WAYS) == (1, [])


def test_a_bridge_that_had_it_and_did_not_put_it() -> None:
    assert faults(*CAME) == [Fault("right", "lost", "in bridge", B, 1)]


def test_what_was_put_onto_the_wire_and_did_not_come() -> None:
    assert faults(*CROSSED) == [Fault("right", "lost", "at the sender", A, 1)]


def test_what_another_bridge_heard_was_lost_on_the_way() -> None:
    other = Seen(("gw-c", "bridge c"), "wire", RX, 1)
    assert faults(*CROSSED, other) == [Fault("right", "lost", "on the way", None, 1)]


def test_a_loss_is_told_once_and_upstream_of_what_follows() -> None:
    assert faults(*ENTERED) == [
        Fault("right", "lost", "upstream", None, 1),
        Fault("wire", "lost", "in bridge", A, 1),
    ]


def test_what_no_bridge_took() -> None:
    assert {one.stage for one in faults(Seen(LEFT, "left", RX, 1))} == {"no bridge"}


def test_doubled_and_echoed() -> None:
    twice = [one._replace(n=2) if one.hub == B and one.dir == TX else one for one in FINE]
    assert faults(*twice) == [Fault("right", "duplicate", "in bridge", B, 1)]
    assert faults(*FINE, Seen(A, "left", TX, 1), first="left") == [Fault("left", "echo", "in bridge", A, 1)]


def test_where_all_that_was_heard_was_also_put_it_entered_where_it_was_heard_first() -> None:
    entered, found = explain([*FINE, Seen(A, "left", TX, 1)], "left", 7, ROUTES, WAYS)
    assert entered == 1
    assert found == [Fault("left", "echo", "in bridge", A, 1)]


def test_of_equal_frames_the_count_tells_how_many_are_missing() -> None:
    three = [one._replace(n=3) for one in CAME]
    some = [Seen(B, "right", TX, 1), Seen(RIGHT, "right", RX, 1)]
    assert explain([*three, *some], "left", 7, ROUTES, WAYS) == (
        3,
        [Fault("right", "lost", "in bridge", B, 2)],
    )


def test_of_equal_frames_one_that_came_back_is_an_echo_and_no_duplicate_elsewhere() -> None:
    three = [one._replace(n=3) for one in FINE]
    back = Seen(A, "left", TX, 1)
    echo = Fault("left", "echo", "in bridge", A, 1)
    assert explain([*three, back], "left", 7, ROUTES, WAYS) == (3, [echo])
    short = [one._replace(n=2) if one.segment == "right" else one for one in three]
    assert explain([*short, back], "left", 7, ROUTES, WAYS) == (
        3,
        [echo, Fault("right", "lost", "in bridge", B, 1)],
    )


def test_a_bridge_that_hears_itself_on_a_wire_makes_no_home_of_it() -> None:
    three = [one._replace(n=3) for one in FINE]
    assert explain([*three, Seen(A, "wire", RX, 1)], "left", 7, ROUTES, WAYS) == (3, [])


def test_of_equal_frames_one_that_nobody_heard_was_lost_before_one_that_another_heard() -> None:
    three = [one._replace(n=3) for one in CROSSED]
    seen = [
        *three,
        Seen(("gw-c", "bridge c"), "wire", RX, 2),
        Seen(B, "wire", RX, 1),
        Seen(B, "right", TX, 1),
    ]
    assert faults(*seen, Seen(RIGHT, "right", RX, 1)) == [
        Fault("right", "lost", "at the sender", A, 1),
        Fault("right", "lost", "on the way", None, 1),
    ]


def test_the_order_of_rows_changes_nothing() -> None:
    """Two segments on which a hub may or may not have heard itself: each guess depends on those before it."""
    routes = {("left", 7): frozenset({"right"}), ("right", 7): frozenset({"left"})}
    routes["up", 7] = frozenset({"left", "right"})
    seen = [
        Seen(A, "right", RX, 2), Seen(A, "right", TX, 2), Seen(B, "left", TX, 2),
        Seen(B, "right", RX, 1), Seen(B, "up", RX, 2), Seen(B, "up", TX, 2),
    ]  # fmt: skip
    assert explain(seen, "left", 7, routes, WAYS) == explain(seen[::-1], "left", 7, routes, WAYS)
