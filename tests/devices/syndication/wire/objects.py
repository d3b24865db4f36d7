"""MessagePack objects: a strategy for them, and a walk through a whole one."""

import msgpack
from hypothesis import strategies as st

from devices.syndication.bounds import Bounds
from devices.syndication.wire.walk import Walk

WIDE = Bounds(object_bytes=1 << 20, items=1 << 20, depth=100)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(max_size=40),
    st.binary(max_size=300),
    st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=20)),
)
objects = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=5), inner, max_size=18),
    max_leaves=40,
)


def whole(packed: bytes, bounds: Bounds = WIDE) -> Walk:
    walk = Walk(bounds)
    assert walk.go(packed)
    return walk
