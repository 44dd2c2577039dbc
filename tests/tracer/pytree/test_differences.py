"""Where structures differ: against a comparison of what is at every path."""

import random
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import pytest

from tapeless.tracer import pytree

ORDERED = "an OrderedDict with"
Point = namedtuple("Point", "x y")


class Strict:
    """A node that refuses children which are numbers."""

    def __init__(self, child: Any) -> None:
        if isinstance(child, int):
            raise TypeError("no number")
        self.child = child


pytree.register_pytree_node(Strict, lambda x: ((x.child,), None), lambda aux, children: Strict(*children))


def told(this: Any, that: Any, **how: Any) -> str:
    found = pytree.differences(pytree.structure(this), pytree.structure(that), **how)
    return pytree.describe_differences(found, ("x", "y"))


@pytest.mark.parametrize(
    ("this", "that", "lines"),
    [
        (
            {"a": 1, "b": 2},
            {"a": [1], "c": 2},
            [
                "['a'] is a leaf in x, a list of 1 in y",
                "['b'] is a leaf in x, nothing in y",
                "['c'] is nothing in x, a leaf in y",
            ],
        ),
        ({}, {"a": 1}, ["The root is a dict with no keys in x, a dict with 'a' in y"]),
        ((1, [2, None]), (1, [2, 3]), ["[1][1] is None in x, a leaf in y"]),
        (Point(1, (2,)), Point(1, (2, 3)), [".y is a tuple of 1 in x, a tuple of 2 in y"]),
        (Point(1, 2), (1, 2), ["The root is a Point of 2 in x, a tuple of 2 in y"]),
        (Strict("s"), Strict(["s"]), ["[<flat index 0>] is a leaf in x, a list of 1 in y"]),
        (
            OrderedDict(a=1, b=2),
            OrderedDict(b=1, a=2),
            [f"The root is {ORDERED} 'a', 'b' in x, {ORDERED} 'b', 'a' in y"],
        ),
        (defaultdict(int, a=1, b=2), defaultdict(int, a=1), ["['b'] is a leaf in x, nothing in y"]),
        (dict.fromkeys(range(9), 1), 1, ["The root is a dict with 0, 1, 2, 3, 4, 5 and 3 more in x, a leaf in y"]),
        ([1] * 9, [[1]] * 9, [*[f"[{i}] is a leaf in x, a list of 1 in y" for i in range(6)], "There are 3 more"]),
    ],
)
def test_every_path_that_differs(this, that, lines):
    assert told(this, that) == "".join(f"  {line}.\n" for line in lines)


def test_a_leaf_of_a_prefix_stands_for_any_part():
    assert told({"a": 1, "b": (1,)}, {"a": [1, 2], "b": (None,)}, as_prefix=True) == ""
    assert told({"a": 1}, {}, as_prefix=True) == "  The root is a dict with 'a' in x, a dict with no keys in y.\n"
    assert told({"a": 1, "b": 2}, {"b": 2}, as_prefix=True) == "  ['a'] is a leaf in x, nothing in y.\n"


def made(random: random.Random, depth: int) -> Any:
    kind = random.choice(["leaf", "leaf", "none", "tuple", "list", "dict"]) if depth else "leaf"
    if kind in ("leaf", "none"):
        return 0.5 if kind == "leaf" else None
    if kind == "dict":
        return {key: made(random, depth - 1) for key in "abc" if random.random() < 0.7}
    parts = [made(random, depth - 1) for _ in range(random.randrange(3))]
    return tuple(parts) if kind == "tuple" else parts


def test_random_trees():
    """Structures are equal if and only if they do not differ; the parts at a path that differs are not equal."""
    source = random.Random(0)
    for _ in range(2000):
        x, y = made(source, 3), made(source, 3)
        found = list(pytree.differences(pytree.structure(x), pytree.structure(y)))
        assert (found == []) == (pytree.structure(x) == pytree.structure(y))
        assert len({pytree.keystr(path) for path, _, _ in found}) == len(found)
        for path, this, that in found:
            assert this == at(x, path) and that == at(y, path) and this != that


def at(tree: Any, path: Any) -> Any:
    for key in path:
        where = key.key if isinstance(key, pytree.DictKey) else key.idx
        if isinstance(tree, dict) and where not in tree:
            return None
        tree = tree[where]
    return pytree.structure(tree)


def test_deep_trees():
    this, that = 1, [1]
    for _ in range(5000):
        this, that = [this], [that]
    (found,) = pytree.differences(pytree.structure(this), pytree.structure(that))
    assert len(found.path) == 5000
