"""Random trees of queries, as a text can spell them, and random metadata that they often match."""

from hypothesis import strategies as st

from devices.syndication.query.tree import KEYWORDS, Among, And, Has, Like, Node, Not, Or

ALIKE = tuple(word.replace("s", "ſ").replace("i", "ı").replace("k", "\N{KELVIN SIGN}") for word in KEYWORDS)
WORDS = (
    "Room",
    "Type",
    "Metadata/Location/Building",
    "a b",
    "Größe",
    'x"y',
    "$d.e-f~%",
    "",
    *KEYWORDS,
    *ALIKE,
)
KEYS = st.sampled_from(WORDS[:4]) | st.sampled_from(WORDS)
NUMBERS = (
    st.integers(-2, 2) | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
TEXTS = st.sampled_from(("", "410", "a", "ab", "1", "true", "\\", "'", '"', "\n")) | st.text(max_size=6)
SCALARS = TEXTS | NUMBERS | st.booleans()
PATTERNS = st.sampled_from(("", "a", "^a$", "b$", r"^\d+$", "4.0", "[^a]", "(?i)A"))
LEAVES = st.one_of(
    st.builds(Has, KEYS),
    st.builds(Among, KEYS, st.lists(SCALARS, min_size=1, max_size=4).map(tuple)),
    st.builds(Like, KEYS, PATTERNS),
)
TREES: st.SearchStrategy[Node] = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        st.builds(Not, parts),
        st.builds(And, st.lists(parts, min_size=2, max_size=3).map(tuple)),
        st.builds(Or, st.lists(parts, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=12,
)
VALUES = st.recursive(
    SCALARS | st.none() | st.binary(max_size=3) | st.just(float("nan")),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(TEXTS, values, max_size=2),
    max_leaves=5,
)
METADATA = st.dictionaries(KEYS, VALUES, max_size=6)
