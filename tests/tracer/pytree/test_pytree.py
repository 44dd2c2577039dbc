"""Pytrees: what is a node, that apart and together is the identity, agreement with JAX, exact errors, threads."""

import copy
import dataclasses
import enum
import functools
import pickle
import threading
from collections import OrderedDict, defaultdict, deque
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
from tapeless.tracer import pytree
from tapeless.tracer.pytree import LEAF, DictKey, FlattenedIndexKey, GetAttrKey, Partial, SequenceKey, keystr


class Point(NamedTuple):
    x: Any
    y: Any


@pytree.register_pytree_node_class
class Pair:
    """A node with auxiliary data and without keys."""

    def __init__(self, left: Any, right: Any, name: Any = None) -> None:
        self.left, self.right, self.name = left, right, name

    def tree_flatten(self) -> Any:
        return [self.left, self.right], self.name

    @classmethod
    def tree_unflatten(cls, name: Any, children: Any) -> "Pair":
        return cls(*children, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pair) and vars(self) == vars(other)


@pytree.register_dataclass
@dataclasses.dataclass
class Linear:
    weight: Any
    bias: Any = None
    name: str = pytree.static(default="linear")


class Color(enum.StrEnum):
    RED = "red"


@pytree.register_static
@dataclasses.dataclass(frozen=True)
class Setting:
    value: Any


TREES: list[tuple[Any, str]] = [
    (1, "*"),
    (None, "None"),
    ((), "()"),
    ((1,), "(*,)"),
    ([1, (2, None)], "[*, (*, None)]"),
    ({"b": 1, "a": [2]}, "{'a': [*], 'b': *}"),
    (Point(1, {"z": 2}), "CustomNode(namedtuple[Point], [*, {'z': *}])"),
    (OrderedDict(b=1, a=2), "CustomNode(OrderedDict[('b', 'a')], [*, *])"),
    (defaultdict(list, b=1), "CustomNode(defaultdict[(<class 'list'>, ('b',))], [*])"),
    (Pair(1, [2], "p"), "CustomNode(Pair[p], [*, [*]])"),
    (Linear(1.0, 2.0), "CustomNode(Linear[('linear',)], [*, *])"),
    (Setting(3), "CustomNode(Setting[Setting(value=3)], [])"),
]
each_tree = pytest.mark.parametrize(("tree", "text"), TREES, ids=[text for _, text in TREES])


def raises(error: type[Exception], message: str, action) -> None:
    with pytest.raises(error) as caught:
        action()
    assert str(caught.value) == message


# ---- apart and together


@each_tree
def test_structures_print_as_in_jax(tree: Any, text: str):
    assert repr(pytree.structure(tree)) == f"PyTreeDef({text})"


@each_tree
def test_flatten_then_unflatten_is_the_identity(tree: Any, text: str):
    leaves, treedef = pytree.flatten(tree)
    for _ in range(20):  # enough for code to be written
        again = treedef.unflatten(leaves)
        assert again == tree and type(again) is type(tree)


@each_tree
def test_structures_are_values(tree: Any, text: str):
    treedef = pytree.structure(tree)
    loose = pytree.structure(tree, is_leaf=lambda x: x is not tree)
    for other in (pytree.structure(tree), copy.deepcopy(treedef), pickle.loads(pickle.dumps(treedef))):
        assert other == treedef and hash(other) == hash(treedef)
    assert (loose == treedef) == (treedef.num_nodes == loose.num_nodes)
    assert treedef != text
    assert sum(child.num_leaves for child in treedef.children) == treedef.num_leaves - (treedef == LEAF)


@each_tree
def test_match_agrees_with_flatten(tree: Any, text: str):
    leaves, treedef = pytree.flatten(tree)
    assert treedef.match(tree) == leaves
    for other, _ in TREES:
        assert (treedef.match(other) is not None) == (pytree.structure(other) == treedef)


def test_match_needs_leaves_where_the_structure_has_them():
    treedef = pytree.structure({"a": 1, "b": (2, None)})
    assert treedef.match({"b": (4, None), "a": 3}) == [3, 4]
    for other in ({"a": (), "b": (2, None)}, {"a": 1, "b": (2, 3)}, {"a": 1, "c": (2, None)}, {"a": 1}, [1]):
        assert treedef.match(other) is None


def test_order_of_leaves():
    assert pytree.leaves({"b": 1, "a": (2, {"d": 3, "c": 4})}) == [2, 4, 3, 1]
    assert pytree.leaves(OrderedDict(b=1, a=2)) == [1, 2]


def test_a_type_counts_exactly():
    class MyDict(dict[Any, Any]):
        pass

    assert pytree.structure(MyDict(a=1)) == LEAF
    assert pytree.structure(deque([1, 2], 3)) != pytree.structure(deque([1, 2]))


def test_structures_differ_by_keys_order_of_types_and_auxiliary_data():
    trees = [(1, 2), [1, 2], {"a": 1, "b": 2}, {"a": 1, "c": 2}, Point(1, 2), OrderedDict(a=1, b=2),
             OrderedDict(b=1, a=2),
             Pair(1, 2, "p"), Pair(1, 2, "q"), Pair(1, 2, 1), Pair(1, 2, 1.0), Pair(1, 2, True), Pair(1, 2, (1,)),
             Pair(1, 2, (1.0,)), *[Pair(1, 2, aux) for aux in (0.0, -0.0, (0.0,), (-0.0,))],
             (1, 2, None), ((1, 2),), (1, (2,)), Linear(1, 2), Linear(1, 2, "other")]  # fmt: skip
    treedefs = [pytree.structure(tree) for tree in trees]
    assert len(set(treedefs)) == len(trees)
    assert pytree.structure(Pair(1, 2, float("nan"))) == pytree.structure(Pair(1, 2, float("nan")))


def test_equal_keys_of_other_types_come_back_as_they_were():
    for tree in ({"red": 1}, {Color.RED: 1}, {np.str_("red"): 1}, {1: 2}, {True: 2}, {1.0: 2}):
        leaves, treedef = pytree.flatten(tree)
        assert [*map(type, treedef.unflatten(leaves))] == [*map(type, tree)]


def test_auxiliary_data_come_back_as_they_were():
    for name in (1, True, 1.0, (1, "a"), (1.0, "a"), (True, "a"), None, "a"):
        leaves, treedef = pytree.flatten(((Pair(1, 2, name),),))
        assert repr(treedef.unflatten(leaves)[0][0].name) == repr(name)


def test_is_leaf():
    tree = {"a": None, "b": (1, [2])}
    leaves, treedef = pytree.flatten(tree, is_leaf=lambda x: x is None or isinstance(x, list))
    assert leaves == [None, 1, [2]]
    assert treedef == pytree.structure({"a": 0, "b": (0, 0)})
    assert pytree.leaves(tree, is_leaf=lambda x: True) == [tree]


def test_wrong_number_of_leaves():
    treedef = pytree.structure((1, [2]))
    message = "unflatten: PyTreeDef((*, [*])) has 2 leaves, but 1 were given."
    raises(ValueError, message, lambda: pytree.unflatten(treedef, [1]))
    with pytest.raises(ValueError, match="but 3 were given"):
        treedef.unflatten(iter([1, 2, 3]))


def test_keys_that_cannot_be_sorted():
    message = "a dict in a pytree must have keys that can be sorted, but these cannot: 1 (int), 'a' (str)."
    raises(ValueError, message, lambda: pytree.flatten({1: 2, "a": 3}))


def test_a_tree_that_contains_itself():
    tree: list[Any] = []
    tree.append(tree)
    message = r"^the pytree contains itself: a list is \d+ levels within\.$"
    for action in (pytree.flatten, pytree.flatten_with_path, lambda x: pytree.flatten(x, is_leaf=lambda _: False)):
        with pytest.raises(RecursionError, match=message):
            action(tree)


def deep_tree(depth: int, leaf: Any = 1.0) -> Any:
    """A tree of tuples, lists, dicts and registered nodes within one another."""
    tree = leaf
    for i in range(depth):
        tree = [(tree, 2.0), {"a": tree}, [tree], Pair(tree, 3.0, ["unhashable"])][i % 4]
    return tree


@pytest.mark.parametrize("depth", [99, 101, 3000])
def test_deep_trees(depth: int):
    tree, other = deep_tree(depth), deep_tree(depth, leaf=10.0)
    leaves, treedef = pytree.flatten(tree)
    assert len(leaves) == treedef.num_leaves and treedef.depth == depth
    again = pytree.structure(other)
    assert (
        again == treedef and hash(again) == hash(treedef) and treedef != pytree.structure(deep_tree(depth, leaf=(1.0,)))
    )
    for _ in range(10):
        assert pytree.leaves(treedef.unflatten(leaves)) == leaves
    assert treedef.match(other) == pytree.leaves(other) and treedef.match([other]) is None
    assert pytree.leaves(tree, is_leaf=lambda x: isinstance(x, str)) == leaves
    pairs, found = pytree.flatten_with_path(tree)
    assert found == treedef and [leaf for _, leaf in pairs] == leaves and len(pairs[0][0]) == depth
    assert treedef.snapshot() == treedef == treedef.compose(pytree.LEAF)
    summed = pytree.tree_map(lambda x, y: x + y, tree, other)
    assert pytree.leaves(summed) == [x + y for x, y in zip(leaves, pytree.leaves(other), strict=True)]
    assert ("..." in str(treedef)) and len(str(treedef)) < 5000
    with pytest.raises(ValueError, match="does not match"):
        pytree.tree_map(lambda x, y: x, tree, deep_tree(depth - 1))


def test_auxiliary_data_without_hash():
    structure = pytree.structure(Pair(1, 2, []))
    assert structure == pytree.structure(Pair(1, 2, [])) != pytree.structure(Pair(1, 2, [0]))
    assert hash(structure) == hash(pytree.structure(Pair(1, 2, [])))
    with_array = pytree.structure(Pair(1, 2, np.ones(2)))
    with pytest.raises(ValueError, match="the auxiliary data of type ndarray in them cannot"):
        assert with_array == pytree.structure(Pair(1, 2, np.ones(2)))


def test_snapshots_do_not_change_with_auxiliary_data():
    aux = {"names": ["a"], "module": np}  # which cannot be copied deeply
    for data in (["a"], [["a"]], aux):
        tree = {"x": Pair(1, 2, data), "y": 3}
        before = pytree.structure(tree)
        snapshot = before.snapshot()
        assert snapshot == before and snapshot.unflatten([1, 2, 3])["y"] == 3
        data.clear()
        assert snapshot != pytree.structure(tree) == before
    for tree in ({"x": Pair(1, 2, "a")}, Pair(1, 2, 0.5), Pair([1], (2,), (0.5, "b"))):
        structure = pytree.structure(tree)
        assert structure.snapshot() is structure


def test_snapshots_keep_markers():
    """What has a hash is the same object, also beside what has none."""
    marker = object()

    class Marked:
        pass

    pytree.register_pytree_node(Marked, lambda x: ((1,), (marker, [{"unset": marker}])), lambda aux, _: aux)
    first, (second,) = pytree.structure(Marked()).snapshot().unflatten([0])
    assert first is marker and second["unset"] is marker


# ---- paths


def test_paths():
    tree = {"a": [1, Point(2, 3)], "b": Pair(4, Linear(5, 6)), "c": OrderedDict(k=7), "d": (deque([8]), None)}
    expected = ["['a'][0]", "['a'][1].x", "['a'][1].y", "['b'][<flat index 0>]", "['b'][<flat index 1>].weight",
                "['b'][<flat index 1>].bias", "['c']['k']", "['d'][0][0]"]  # fmt: skip
    pairs, treedef = pytree.flatten_with_path(tree)
    assert [keystr(path) for path, _ in pairs] == expected
    assert [leaf for _, leaf in pairs] == pytree.leaves(tree)
    assert treedef == pytree.structure(tree)
    assert keystr(pairs[2][0], simple=True, separator="/") == "a/1/y"


def test_is_leaf_can_take_the_path():
    pairs = pytree.leaves_with_path(
        {"a": [1], "b": [2]}, lambda path, _: path == (DictKey("b"),), is_leaf_takes_path=True
    )
    assert [leaf for _, leaf in pairs] == [1, [2]]


def test_keys_are_values():
    assert {DictKey("a"), SequenceKey(0), GetAttrKey("a"), FlattenedIndexKey(0), DictKey("a")} == {
        DictKey("a"), SequenceKey(0), GetAttrKey("a"), FlattenedIndexKey(0)}  # fmt: skip
    assert repr(GetAttrKey("w")) == "GetAttrKey(name='w')"


def test_one_level():
    assert pytree.flatten_one_level({"b": [1], "a": 2}) == ((2, [1]), ("a", "b"))
    assert pytree.flatten_one_level_with_keys([5])[0] == ((SequenceKey(0), 5),)
    raises(
        ValueError, "flatten_one_level: an int is a leaf, which has no children.", lambda: pytree.flatten_one_level(1)
    )


# ---- over leaves


def test_map():
    assert pytree.tree_map(lambda x: -x, {"a": (1, None), "b": [2]}) == {"a": (-1, None), "b": [-2]}
    assert pytree.tree_map(lambda x, y: (x, y), (1, [2]), ({"k": 3}, [(4, 5)])) == ((1, {"k": 3}), [(2, (4, 5))])
    assert pytree.tree_map_with_path(lambda path, x, y: keystr(path) + str(x + y), {"a": [1]}, {"a": [2]}) == {
        "a": ["['a'][0]3"]
    }


def test_map_of_trees_that_differ():
    first, second = {"layers": [{"w": 1, "b": 2}, 3]}, {"layers": [{"w": 1, "c": 2}, 3]}
    message = """tree_map: tree 2 does not match tree 1.
  ['layers'][0]['b'] is a leaf in tree 1, nothing in tree 2.
  ['layers'][0]['c'] is nothing in tree 1, a leaf of type int in tree 2.
  They must have the same nodes; only where tree 1 has a leaf may tree 2 have anything."""
    raises(ValueError, message, lambda: pytree.tree_map(max, first, second))


@pytest.mark.parametrize(("first", "third", "line"), [
    ((1, None), (1, 2), "[1] is None in tree 1, a leaf of type int in tree 3."),
    ([1], (1,), "The root is a list of 1 in tree 1, a tuple of 1 in tree 3."),
    ((1, 2), (1, 2, 3), "The root is a tuple of 2 in tree 1, a tuple of 3 in tree 3."),
    (Point(1, [2]), Point(1, 2), ".y is a list of 1 in tree 1, a leaf of type int in tree 3."),
])  # fmt: skip
def test_where_trees_differ(first: Any, third: Any, line: str):
    with pytest.raises(ValueError) as caught:
        pytree.tree_map(max, first, first, third)
    assert f"tree_map: tree 3 does not match tree 1.\n  {line}\n  They" in str(caught.value)


def test_reduce_and_all():
    assert pytree.tree_reduce(lambda x, y: x + y, {"a": "x", "b": ["y", "z"]}) == "xyz"
    assert pytree.tree_reduce(lambda x, y: x + y, [], "start") == "start"
    assert pytree.tree_all({"a": True, "b": []}) and not pytree.tree_all([1, 0])
    for n in range(1, 9):
        assert pytree.tree_reduce_associative(lambda x, y: x + y, list("abcdefgh"[:n])) == "abcdefgh"[:n]
    assert pytree.tree_reduce_associative(max, (), identity=3) == 3
    message = "tree_reduce_associative: a tree without leaves needs an identity."
    raises(TypeError, message, lambda: pytree.tree_reduce_associative(max, ()))


def test_all_leaves():
    assert pytree.all_leaves([1, "a", np.ones(2)])
    assert not pytree.all_leaves([1, None])
    assert pytree.all_leaves([1, None], is_leaf=lambda x: x is None)


# ---- prefixes and structures


def test_prefixes():
    full = {"a": [1, 2], "b": (3, {"c": 4})}
    assert pytree.broadcast_prefix(0, full) == [0, 0, 0, 0]
    assert pytree.broadcast_prefix({"a": 0, "b": (1, 2)}, full) == [0, 0, 1, 2]
    assert pytree.broadcast_prefix({"a": None, "b": 1}, full, is_leaf=lambda x: x is None) == [None, None, 1, 1]
    assert pytree.tree_broadcast({"a": 0, "b": 1}, full) == {"a": [0, 0], "b": (1, {"c": 1})}


def test_what_is_no_prefix():
    message = """vmap: the full tree does not match in_axes.
  [1] is a tuple of 2 in in_axes, a leaf of type float in the full tree.
  They must have the same nodes; only where in_axes has a leaf may the full tree have anything."""
    raises(ValueError, message, lambda: pytree.broadcast_prefix((0, (1, 2)), (5.0, 6.0), who="vmap", name="in_axes"))


def test_transpose():
    outer, inner = pytree.structure({"a": 0, "b": 0}), pytree.structure((0, [0]))
    tree = {"a": (1, [2]), "b": (3, [4])}
    expected = ({"a": 1, "b": 3}, [{"a": 2, "b": 4}])
    assert pytree.tree_transpose(outer, inner, tree) == expected
    assert pytree.tree_transpose(outer, None, tree) == expected
    with pytest.raises(ValueError, match=r"tree_transpose: inner tree 1 does not match inner_treedef\.\n  \[1\] is"):
        pytree.tree_transpose(outer, inner, {"a": (1, [2]), "b": (3, 4)})
    with pytest.raises(ValueError, match="has no leaves to see inner_treedef of"):
        pytree.tree_transpose(pytree.structure(()), None, ())


class Flat:
    """A mapping that keeps the structure of all that is in it, and the leaves of it as children, as Haiku's do."""

    def __init__(self, structure, leaves):
        self.structure, self.leaves = structure, list(leaves)

    @classmethod
    def of(cls, tree):
        leaves, structure = pytree.flatten(tree)
        return cls(structure, leaves)


def test_transpose_nodes_that_keep_structures():
    pytree.register_pytree_node(Flat, lambda flat: (flat.leaves, flat.structure), Flat)
    inner = pytree.structure((0, [0]))
    for around, within in ((lambda x: x, lambda x: x), (lambda x: [x, x], lambda found: found[1])):
        outer = pytree.structure(around(Flat.of({"a": 1, "b": 2})))
        tree = around(Flat.of({"a": (1, [2]), "b": (3, [4])}))
        first, (second,) = pytree.tree_transpose(outer, inner, tree)
        assert within(first).structure == within(second).structure == pytree.structure({"a": 1, "b": 2})
        assert (within(first).leaves, within(second).leaves) == ([1, 3], [2, 4])
    other = Flat.of({"a": (1, [2]), "c": (3, [4])})  # of as many leaves, but of other keys
    with pytest.raises(ValueError, match="does not match outer_treedef"):
        pytree.tree_transpose(pytree.structure(Flat.of({"a": 1, "b": 2})), inner, other)


def test_structures_of_structures():
    treedef = pytree.structure({"a": 0, "b": [0]})
    assert treedef.compose(pytree.structure((0, 0))) == pytree.structure({"a": (0, 0), "b": [(0, 0)]})
    assert pytree.treedef_tuple([treedef, LEAF]) == pytree.structure(({"a": 0, "b": [0]}, 0))
    assert pytree.treedef_children(treedef) == treedef.children() == [LEAF, pytree.structure([0])]
    assert treedef.node_data() == (dict, ("a", "b"))
    assert LEAF.node_data() is None and pytree.treedef_is_leaf(LEAF) and not pytree.treedef_is_leaf(treedef)


# ---- registration


def test_registering_twice():
    path = f"{__name__}.Pair"
    message = f"{path} is a node of pytrees already: register a class once."
    raises(ValueError, message, lambda: pytree.register_pytree_node_class(Pair))
    with pytest.raises(ValueError, match=r"builtins\.list is a node"):
        pytree.register_pytree_node(list, lambda x: (x, None), lambda aux, children: children)
    message = "only a class can be registered as a node of pytrees, not 3."
    raises(TypeError, message, lambda: pytree.register_pytree_node(3, max, max))  # type: ignore[arg-type]


def test_registering_after_an_instance_was_a_leaf():
    class Late:
        def __init__(self, x: Any) -> None:
            self.x = x

    assert pytree.leaves([Late(1), Late(2)])[0].x == 1
    pytree.register_pytree_node(Late, lambda late: ((late.x,), None), lambda aux, children: Late(*children))
    assert pytree.leaves([Late(1), Late(2)]) == [1, 2]
    assert pytree.is_tree_node(Late)


def test_registering_a_named_tuple_replaces_its_default():
    class Span(NamedTuple):
        start: int
        stop: int

    assert pytree.leaves(Span(1, 2)) == [1, 2]
    pytree.register_pytree_node(Span, lambda s: ((s.start,), s.stop), lambda stop, children: Span(*children, stop))
    assert pytree.leaves(Span(1, 2)) == [1]


def test_keys_of_registered_classes():
    @pytree.register_pytree_with_keys_class
    class Named:
        def __init__(self, x: Any) -> None:
            self.x = x

        def tree_flatten_with_keys(self) -> Any:
            return ((GetAttrKey("x"), self.x),), None

        @classmethod
        def tree_unflatten(cls, aux: Any, children: Any) -> "Named":
            return cls(*children)

    assert [keystr(path) for path, _ in pytree.leaves_with_path([Named([1])])] == ["[0].x[0]"]
    assert pytree.tree_map(lambda x: x + 1, Named(1)).x == 2


def test_a_flatten_function_that_returns_no_pair():
    class Wrong:
        pass

    pytree.register_pytree_node(Wrong, lambda x: [1, 2, 3], lambda aux, children: None)  # type: ignore[arg-type]
    message = "the flatten function of Wrong must return (children, auxiliary data): [1, 2, 3]."
    raises(TypeError, message, lambda: pytree.leaves(Wrong()))


def test_dataclasses():
    @dataclasses.dataclass
    class Layer:
        weight: Any
        size: int
        cache: Any = None

    have, want = "data_fields and meta_fields are ['size', 'wieght']", "__init__ takes ['size', 'weight']"
    message = f"register_dataclass(Layer): {have}, but {want}."
    raises(ValueError, message, lambda: pytree.register_dataclass(Layer, ["wieght"], ["size"], drop_fields=["cache"]))
    message = "register_dataclass(Layer): give data_fields and meta_fields both, or none of them."
    raises(ValueError, message, lambda: pytree.register_dataclass(Layer, ["weight"]))
    assert pytree.register_dataclass(Layer, ["weight"], ["size"], drop_fields=["cache"]) is Layer
    doubled = pytree.tree_map(lambda x: 2 * x, Layer(1.5, 3, "cached"))
    assert doubled == Layer(3.0, 3, None)


# ---- Partial


def test_partial():
    f = Partial(max, 1, key=abs)
    leaves, treedef = pytree.flatten(f)
    assert leaves == [1, abs] and treedef == pytree.structure(Partial(max, 2, key=len))
    assert treedef.unflatten([-5, abs])(3) == -5
    assert treedef != pytree.structure(Partial(min, 1, key=abs))


def test_partial_of_partials_keeps_their_arguments_out():
    inner = functools.partial(max, 1)
    assert pytree.leaves(Partial(inner, 2)) == [2] and Partial(inner, 2)(0) == 2
    assert pytree.leaves(Partial(Partial(max, 1), 2)) == [2] and Partial(Partial(max, 1), 2)(3) == 3
    assert pytree.structure(Partial(inner, 2)) == pytree.structure(Partial(inner, 3))
    assert Partial(inner, 2).func == inner == Partial(inner, 3).func and hash(Partial(inner, 2).func) == hash(inner)
    assert Partial(inner, 2).func != functools.partial(max, 2)


# ---- many structures, many threads


def test_full_tables_forget_and_stay_right():
    first = pytree.structure([{"key": (1, [2])}])
    for n in range(9000):
        assert pytree.structure({f"k{n}": (n, [n])}).num_leaves == 2
    again = pytree.structure([{"key": (1, [2])}])
    assert first == again and hash(first) == hash(again)


def test_threads_agree():
    found: list[Any] = []
    fresh = [{f"t{i}": [i, {f"u{j}": (j,) * (j % 3) for j in range(5)}]} for i in range(50)]

    def work() -> None:
        found.append([pytree.structure(tree) for tree in fresh])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(treedefs == found[0] for treedefs in found)


# ---- properties

unhurried = settings(deadline=None)  # machines that run tests are shared
leaf = st.integers() | st.text(max_size=3) | st.booleans()
keys = st.text(max_size=3)
nested = st.recursive(
    leaf | st.none(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(st.integers(), inner, max_size=3),
        st.dictionaries(keys, inner, max_size=3).map(OrderedDict),
        st.builds(Point, inner, inner),
    ),
    max_leaves=20,
)


@unhurried
@given(nested)
def test_unflatten_after_flatten_is_the_identity(tree: Any):
    leaves, treedef = pytree.flatten(tree)
    assert treedef.unflatten(leaves) == tree
    assert pytree.flatten(treedef.unflatten(leaves)) == (leaves, treedef)
    assert treedef.match(tree) == leaves


@unhurried
@given(nested)
def test_map_of_the_identity_is_the_identity(tree: Any):
    assert pytree.tree_map(lambda x: x, tree) == tree
    assert [x for _, x in pytree.leaves_with_path(tree)] == pytree.leaves(tree)


@unhurried
@given(nested, nested)
def test_equality_of_structures_is_that_of_trees_of_zeros(x: Any, y: Any):
    zeros = [pytree.tree_map(lambda _: 0, tree) for tree in (x, y)]
    assert (pytree.structure(x) == pytree.structure(y)) == (repr(zeros[0]) == repr(zeros[1]))


@unhurried
@given(nested)
def test_agrees_with_jax(tree: Any):
    theirs = pytest.importorskip("jax.tree_util")
    leaves, treedef = pytree.flatten(tree)
    their_leaves, their_treedef = theirs.tree_flatten(tree)
    assert leaves == their_leaves
    assert repr(treedef) == repr(their_treedef)
    assert (treedef.num_leaves, treedef.num_nodes) == (their_treedef.num_leaves, their_treedef.num_nodes)
    assert treedef.unflatten(leaves) == theirs.tree_unflatten(their_treedef, leaves)
    paths = [theirs.keystr(path) for path, _ in theirs.tree_leaves_with_path(tree)]
    assert [keystr(path) for path, _ in pytree.leaves_with_path(tree)] == paths


@unhurried
@given(nested, nested)
def test_prefixes_agree_with_jax(prefix: Any, full: Any):
    theirs = pytest.importorskip("jax.tree_util")
    try:
        expected = theirs.tree_broadcast(prefix, full)
    except ValueError:
        with pytest.raises(ValueError, match="tree_broadcast: the full tree does not match prefix_tree"):
            pytree.tree_broadcast(prefix, full)
    else:
        assert pytree.tree_broadcast(prefix, full) == expected


# ---- the registry as an object -------------------------------------------------------------------------------


def test_default_registry():
    registry = tl.tree_util.default_registry
    tree = {"a": [1, Point(2, None)]}
    assert registry.flatten(tree) == pytree.flatten(tree)
    assert registry.flatten_with_path(tree) == pytree.flatten_with_path(tree)
    stops = registry.flatten_with_path(tree, lambda path, part: len(path) == 1)
    assert stops[0] == [((DictKey("a"),), tree["a"])]
    assert registry.flatten_one_level(tree) == ((tree["a"],), ("a",)) and registry.flatten_one_level(1) is None
    assert registry.flatten_one_level_with_keys([3]) == (((SequenceKey(0), 3),), None)
    assert registry.flatten_one_level_with_keys(3) is None
    assert [registry.is_node(cls) for cls in (dict, Point, type(None), int)] == [True, True, True, False]

    class Own:
        x = 1

    registry.register_node(Own, lambda own: ((own.x,), None), lambda aux, children: Own())
    assert registry.flatten(Own())[0] == [1]

    @dataclasses.dataclass
    class Two:
        x: int
        y: int

    registry.register_dataclass_node(Two, ["x"], ["y"])
    assert registry.flatten(Two(1, 2))[0] == [1]
