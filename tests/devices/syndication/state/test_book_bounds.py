"""The bounds of a book: of producers, speakers, queries and sets, and what makes room."""

from tests.devices.syndication.state.model import Room

# bounds


def test_the_bounds_of_one_producer() -> None:
    room = Room(metadata_keys=2, metadata_bytes=20)
    room.subscribe("s", "all")
    assert room.publish("p", "a", x=1, y=2).refused == ""
    assert room.publish("p", "a", z=3).refused == "metadata of one producer"
    assert room.publish("p", "a", x=None, z=3).refused == ""
    assert room.publish("p", "a", z="long" * 5).refused == "metadata of one producer"
    assert room.of("s") == [([], []), (["a"], []), "a", "a"]


def test_a_refused_publication_leaves_nothing_behind() -> None:
    room = Room(metadata_keys=1)
    room.subscribe("s", "all")
    assert room.publish("p", "a", x=1, y=2).refused
    assert len(room.book.producers) == 0
    room.leave("p")
    assert room.of("s") == [([], [])]


def test_a_producer_that_is_gone_makes_room_and_one_that_is_present_does_not() -> None:
    room = Room(producers=3)
    for client in "pqr":
        room.publish(client, f"of {client}", Room="410")
    assert room.publish("x", "new").refused == "producers full"
    room.leave("q")
    room.leave("p")
    assert room.publish("p", "of p").refused == ""
    assert room.publish("x", "new").refused == ""
    assert room.book.producers.find("of q") is None
    assert room.book.producers.forgotten == {"age": 0, "room": 1}
    assert room.publish("x", "newer").refused == "producers full"


def test_room_that_would_not_do_is_not_made() -> None:
    room = Room(all_metadata_bytes=30)
    room.publish("p", "a", k="0123456789")
    room.publish("q", "b", k="0123456789")
    room.leave("q")
    assert room.publish("p", "c", k="0123456789" * 2).refused == "metadata full"
    assert room.book.producers.find("b") is not None
    assert room.publish("p", "c", k="0123456789").refused == ""
    assert room.book.producers.find("b") is None


def test_a_gone_producer_that_comes_back_does_not_make_room_of_itself() -> None:
    room = Room(all_metadata_bytes=20)
    room.publish("p", "a", k="0123456789")
    room.leave("p")
    assert room.publish("p", "a", l="0123456789").refused == "metadata full"
    room.subscribe("s", "has k")
    assert room.publish("p", "a").refused == ""
    assert room.of("s") == [([], []), (["a"], []), "a"]


def test_the_bounds_of_speakers() -> None:
    room = Room(speakers=4, speakers_per_client=2, speakers_per_host=3)
    assert room.publish("p", "a", "h").refused == room.publish("p", "b", "h").refused == ""
    assert room.publish("p", "c", "h").refused == "speakers of one client"
    assert room.publish("q", "c", "h").refused == ""
    assert room.publish("q", "d", "h").refused == "speakers of one host"
    assert room.publish("r", "d", "g").refused == ""
    assert room.publish("r", "e", "g").refused == "speakers full"
    room.leave("p")
    assert room.publish("r", "e", "g").refused == ""
    assert room.publish("q", "d", "h").refused == ""


def test_room_that_is_refused_gives_the_speaker_back() -> None:
    room = Room(producers=1, speakers=2)
    room.publish("p", "a")
    for _ in range(5):
        assert room.publish("q", "b").refused == "producers full"
    assert room.publish("q", "a").refused == ""


def test_the_bounds_of_queries_and_a_refused_one_keeps_the_last() -> None:
    room = Room(queries=3, queries_per_host=2, all_query_bytes=20)
    assert room.subscribe("s", "has a", "h").refused == ""
    assert room.subscribe("t", "has a", "h").refused == ""
    assert room.subscribe("u", "has a", "h").refused == "queries of one host"
    assert room.subscribe("u", "has a", "g").refused == ""
    assert room.subscribe("v", "all").refused == "queries full"
    assert room.subscribe("s", "has a_long_name", "h").refused == "queries full"
    room.heard.clear()
    room.publish("p", "1", a=1)
    assert room.of("s") == [(["1"], []), "1"]
    room.leave("t")
    assert room.subscribe("s", "has b", "h").refused == ""
    assert room.subscribe("v", "all").refused == ""


def test_the_bound_of_all_sets_together() -> None:
    room = Room(members=3)
    room.publish("p", "a", x=1)
    room.publish("p", "b", x=1)
    assert room.subscribe("s", "has x").refused == ""
    assert room.subscribe("t", "has x").refused == ""  # the same set
    assert room.subscribe("u", "all").refused == "sets full"
    assert len(room.book.sets.queries) == 1
    assert room.publish("p", "c", x=1).refused == ""
    assert room.publish("p", "d", x=1).refused == "sets full"
    assert room.publish("p", "d").refused == ""
    assert room.publish("p", "d", x=1).refused == "sets full"
    assert room.publish("p", "a", x=None).refused == ""
    assert room.publish("p", "d", x=1).refused == ""
    assert room.book.sets.queries.members == 3


def test_a_change_that_would_cost_too_much_is_refused() -> None:
    room = Room(change_cost=1000, instructions=200)
    room.publish("p", "a", K="x" * 100, L="y" * 100)
    assert room.subscribe("s", "costs 9 K| has L").refused == ""
    assert room.publish("p", "a", K="z" * 100).refused == ""
    assert room.subscribe("t", "costs 2 K").refused == ""
    assert room.publish("p", "a", K="y" * 100).refused == "metadata too costly"
    assert room.publish("p", "a", L="z" * 100).refused == ""  # one of the two is evaluated, and costs 900
    assert room.publish("p", "a", K=["y" * 90, 5, {}]).refused == ""
    assert room.publish("q", "b", K="ö" * 46).refused == "metadata too costly"
    assert room.publish("q", "b", M="x" * 1000).refused == ""
    room.leave("t")
    assert room.publish("p", "a", K="y" * 100).refused == ""


def test_a_change_that_would_be_compared_for_too_long_is_refused() -> None:
    room = Room(change_cost=1000)  # a comparison costs 40 for each element of a list, not of a short one
    assert room.subscribe("s", "K != a").refused == ""
    assert room.publish("p", "a", K=["x"] * 25).refused == ""
    assert room.publish("p", "a", K=["x"] * 26).refused == "metadata too costly"
    assert room.subscribe("t", "K != b").refused == ""
    assert room.publish("p", "a", K=["x"] * 13).refused == "metadata too costly"
    assert room.publish("p", "a", K=["x"] * 8).refused == ""
    assert room.publish("p", "a", L=["x"] * 500).refused == ""


def test_only_lists_of_more_than_eight_elements_cost_anything_to_compare() -> None:
    room = Room(change_cost=39)
    room.subscribe("s", "K != a")
    assert room.publish("p", "a", K="x").refused == ""
    assert room.publish("p", "a", K=["x"] * 8).refused == ""
    assert room.publish("p", "a", K=["x"] * 9).refused == "metadata too costly"


def test_the_lists_of_a_producer_have_a_bound_together() -> None:
    room = Room(metadata_elements=10)
    assert room.publish("p", "a", K=["x"] * 6, L=["x"] * 4, M="x" * 100).refused == ""
    assert room.publish("p", "a", N=["x"]).refused == "metadata of one producer"
    assert room.publish("p", "a", K=None, N=["x"]).refused == ""


def test_the_patterns_on_one_key_have_a_bound() -> None:
    room = Room(instructions=200)
    assert room.subscribe("s", "costs 100 K").refused == ""
    assert room.subscribe("t", "costs 100 K| costs 200 L").refused == ""
    assert room.subscribe("u", "costs 1 K").refused == "patterns on one key"
    assert room.subscribe("u", "costs 100 K").refused == ""  # an equal one is there
    room.leave("t")
    assert room.subscribe("t", "costs 100 K| has M").refused == ""
    for client in "stu":
        room.leave(client)
    assert not room.book.sets.queries.instructions
