"""Keys of values: one for those that cannot be told apart, and another for every other value."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from tapeless.arguments.static import Statics
from tapeless.tracer.caches import exact_key
from tapeless.tracer.pytree.treedef import Node, node_of


class Pair(NamedTuple):
    x: Any
    y: Any


class Length(float):
    """A float of a user's class."""


NUMBERS: list[Any] = [
    *(0, 1, False, True, 0.0, -0.0, 1.0, math.nan, math.inf, 0j, complex(-0.0, 0), complex(0, -0.0), 1 + 0j, "1", b"1"),
    *(np.float64(0), np.float64(-0.0), np.float64(1), np.float64(math.nan), np.float32(1), np.float32(-0.0)),
    *(np.int32(1), np.int64(1), np.bool(True), np.complex64(1), None),
]
VALUES = [*NUMBERS, *[(x,) for x in NUMBERS], *[((x,),) for x in NUMBERS], *[frozenset([x]) for x in NUMBERS], ()]


def of_none(_: Any) -> None:
    """Return no key."""


def again(x: Any) -> Any:
    """Return another object with the same bits."""
    if isinstance(x, (tuple, frozenset)):
        return type(x)([again(part) for part in x])
    if isinstance(x, (complex, np.generic)):
        return x + type(x)(0) if x == 1 else x
    return float.fromhex(x.hex()) if type(x) is float else x


def test_keys_are_exact():
    keys = [exact_key(x, of_none) for x in VALUES]
    assert None not in keys and len(set(keys)) == len(VALUES)
    assert [exact_key(again(x), of_none) for x in VALUES] == keys


@pytest.mark.parametrize(
    "value",
    [[], [1], {}, len, object(), Pair(1, 2), Length(1), np.zeros(2)],
    ids="empty list,list,dict,function,object,named tuple,dataclass,array".split(","),
)
def test_a_value_that_may_change_has_no_key(value):
    assert exact_key(value, of_none) is exact_key((1, value), of_none) is exact_key(((value,), 1), of_none) is None
    assert exact_key((1, value), lambda x: "other") == (tuple, ((int, 1), "other"))


def test_static_arguments_and_structures_have_exact_keys():
    statics = [*VALUES, *[Pair(x, 1) for x in NUMBERS], Length(0.0), Length(-0.0), Length(math.nan), len, int, object()]
    keys = [Statics((((0, x),), ())) for x in statics]
    assert len(set(keys)) == len(statics)
    assert keys[-4] == Statics((((0, Length(math.nan)),), ()))
    kind: Any = type("Kind", (), {"type": tuple})
    nodes = [node_of(kind, x) for x in VALUES]
    assert len(set(map(id, nodes))) == len(VALUES) and all(isinstance(node, Node) for node in nodes)
    assert all(node_of(kind, again(x)) is node for x, node in zip(VALUES, nodes, strict=True))
