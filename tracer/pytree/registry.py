"""The registry of pytree nodes: Python's containers, and the classes that users register."""

import dataclasses
import functools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias, TypeVar

from tapeless.tracer.caches import bound_entries
from tapeless.tracer.pytree.keypath import DictKey, FlattenedIndexKey, GetAttrKey, KeyEntry, SequenceKey
from tapeless.tracer.pytree.treedef import Node, NodeType, classes_lock, declare, node_of, node_types

T = TypeVar("T", bound=type)
Flat: TypeAlias = tuple[Iterable[Any], Any]
FlatWithKeys: TypeAlias = tuple[Iterable[tuple[KeyEntry, Any]], Any]

# ---- Python's containers


def _sequence_keys(tree: Any, aux: Any, n: int) -> Iterable[KeyEntry]:
    return map(SequenceKey, range(n))


def _dict_keys(tree: Any, aux: tuple[Any, ...], n: int) -> Iterable[KeyEntry]:
    return map(DictKey, aux)


def _sorted_keys(tree: dict[Any, Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(tree))
    except TypeError:
        keys = ", ".join(f"{key!r} ({type(key).__name__})" for key in tree)
        raise ValueError(f"a dict in a pytree must have keys that can be sorted, but these cannot: {keys}.") from None


def _flatten_dict(tree: dict[Any, Any]) -> Flat:
    keys = _sorted_keys(tree)
    return _values_of(keys)(tree), keys


def _values_of(keys: tuple[Any, ...]) -> Callable[[dict[Any, Any]], tuple[Any, ...]]:
    if len(keys) > 1:
        return itemgetter(*keys)
    return lambda tree: tuple([tree[key] for key in keys])


def _flatten_defaultdict(tree: defaultdict[Any, Any]) -> Flat:
    children, keys = _flatten_dict(tree)
    return children, (tree.default_factory, keys)


_TUPLE = NodeType(tuple, lambda tree: (tree, None), lambda aux, children: children, _sequence_keys)
_LIST = NodeType(list, lambda tree: (tree, None), lambda aux, children: list(children), _sequence_keys)
_NONE = NodeType(type(None), lambda tree: ((), None), lambda aux, children: None, lambda tree, aux, n: ())
_DICT = NodeType(dict, _flatten_dict, lambda keys, children: dict(zip(keys, children, strict=True)), _dict_keys)
_tuple, _list, _none = node_of(_TUPLE, None), node_of(_LIST, None), node_of(_NONE, None)

# Forms of dicts by their keys in the order of insertion: types of the keys, getter of the values in sorted order, node.
# Types are compared because keys of different types can be equal (1 and True, "a" and a StrEnum's "a") and must stay.
_DictForm: TypeAlias = tuple[tuple[type, ...], Callable[[Any], Sequence[Any]], Node]
_dict_forms: dict[tuple[Any, ...], _DictForm] = {}
_DICT_FORMS_LIMIT = 4096


def _open_dict(tree: dict[Any, Any]) -> tuple[Sequence[Any], Node]:
    form = _dict_forms.get(tuple(tree))
    if form is None or form[0] != tuple(map(type, tree)):
        form = _dict_form(tree)
    return form[1](tree), form[2]


def _dict_form(tree: dict[Any, Any]) -> _DictForm:
    keys = _sorted_keys(tree)
    form = tuple(map(type, tree)), _values_of(keys), node_of(_DICT, keys)
    if form[2].interned:
        bound_entries(_dict_forms, _DICT_FORMS_LIMIT)[tuple(tree)] = form
    return form


declare(_TUPLE, lambda tree: (tree, _tuple))
declare(_LIST, lambda tree: (tree, _list))
declare(_NONE, lambda tree: ((), _none))
declare(_DICT, _open_dict)
declare(
    NodeType(
        OrderedDict,
        lambda tree: (tuple(tree.values()), tuple(tree)),
        lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
        _dict_keys,
    )
)
declare(
    NodeType(
        defaultdict,
        _flatten_defaultdict,
        lambda aux, children: defaultdict(aux[0], zip(aux[1], children, strict=True)),
        lambda tree, aux, n: map(DictKey, aux[1]),
    )
)
declare(
    NodeType(deque, lambda tree: (tree, tree.maxlen), lambda maxlen, children: deque(children, maxlen), _sequence_keys)
)

# ---- registration


_registered: set[type] = {tuple, list, dict, type(None), OrderedDict, defaultdict, deque}


def _register(node_type: NodeType) -> None:
    cls: Any = node_type.cls
    if not isinstance(cls, type):
        raise TypeError(f"only a class can be registered as a node of pytrees, not {cls!r}.")
    with classes_lock:
        if cls in _registered:
            raise ValueError(
                f"{cls.__module__}.{cls.__qualname__} is a node of pytrees already: register a class once."
            )
        _registered.add(cls)
        declare(node_type)


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], Flat],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], FlatWithKeys] | None = None,
) -> None:
    """Register a class as a pytree node.

    Args:
      nodetype: the class; instances of its subclasses are not affected.
      flatten_func: x -> (children, auxiliary data). Auxiliary data are part of the structure, and must have ==.
      unflatten_func: (auxiliary data, children) -> x. Children can be anything, not only arrays.
      flatten_with_keys_func: x -> (pairs of a key and a child, auxiliary data), for paths.
    Raises: ValueError if the class is registered already; TypeError if `nodetype` is no class.

    >>> import tapeless as tl
    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> register_pytree_node(Interval, lambda x: ((x.low, x.high), None), lambda _, children: Interval(*children))
    >>> tl.tree.map(lambda x: 2 * x, Interval(1.0, 3.0)).high
    6.0
    """

    def keys(tree: Any, aux: Any, n: int) -> Iterable[KeyEntry]:
        if flatten_with_keys_func is None:
            return map(FlattenedIndexKey, range(n))
        return [key for key, _ in flatten_with_keys_func(tree)[0]]

    _register(NodeType(nodetype, flatten_func, unflatten_func, keys))


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], FlatWithKeys],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], Flat] | None = None,
) -> None:
    """Register a class that gives keys of its children; `flatten_func`, for speed, is derived if None.

    >>> import tapeless as tl
    >>> class Named:
    ...     def __init__(self, value):
    ...         self.value = value
    >>> key = tl.tree_util.GetAttrKey("value")
    >>> register_pytree_with_keys(Named, lambda x: (((key, x.value),), None), lambda _, children: Named(*children))
    >>> tl.tree_util.keystr(tl.tree.leaves_with_path(Named(1.0))[0][0])
    '.value'
    """

    def flatten(tree: Any) -> Flat:
        pairs, aux = flatten_with_keys(tree)
        return tuple([child for _, child in pairs]), aux

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: T) -> T:
    """Register a decorated class with `tree_flatten(self)` and a class method `tree_unflatten(cls, aux, children)`.

    >>> @register_pytree_node_class
    ... class Pair:
    ...     def __init__(self, x, y): self.x, self.y = x, y
    ...     def tree_flatten(self): return (self.x, self.y), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children): return cls(*children)
    """
    own: Any = cls
    register_pytree_node(cls, own.tree_flatten, own.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: T) -> T:
    """Register a decorated class with `tree_flatten_with_keys`, `tree_unflatten`, and maybe `tree_flatten`.

    >>> import tapeless as tl
    >>> @register_pytree_with_keys_class
    ... class Scaled:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def tree_flatten_with_keys(self):
    ...         return ((tl.tree_util.GetAttrKey("value"), self.value),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> tl.tree.map(lambda x: 2 * x, Scaled(1.5)).value
    3.0
    """
    own: Any = cls
    plain = getattr(own, "tree_flatten", None)
    register_pytree_with_keys(cls, own.tree_flatten_with_keys, own.tree_unflatten, plain)
    return cls


def register_static(cls: T) -> T:
    """Register a decorated class whose instances are auxiliary data, without leaves; they must have ==.

    >>> import tapeless as tl
    >>> @register_static
    ... class Kind(str):
    ...     pass
    >>> tl.tree.leaves({"kind": Kind("linear"), "w": 1.0})
    [1.0]
    """
    register_pytree_node(cls, lambda tree: ((), tree), lambda aux, children: aux)
    return cls


def register_dataclass(
    nodetype: T,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> T:
    """Register a dataclass as a pytree node, with its fields as children.

    Args:
      nodetype: the class; it is returned, so that this can be a decorator.
      data_fields: names of the children; if not given, all fields without `metadata={"static": True}`.
      meta_fields: names of the auxiliary data, which must have ==; if not given, the fields with that metadata.
      drop_fields: names of fields that are neither: unflatten gives them their defaults.
    Raises: ValueError if the names given are not the fields that __init__ takes, or only one of the two is given.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Linear:
    ...     weight: float
    ...     name: str = dataclasses.field(default="", metadata={"static": True})
    """
    data, meta = _chosen_fields(nodetype, data_fields, meta_fields, drop_fields)
    values, statics = _attributes(data), _attributes(meta)

    def unflatten(aux: tuple[Any, ...], children: tuple[Any, ...]) -> Any:
        return nodetype(**dict(zip(data, children, strict=True)), **dict(zip(meta, aux, strict=True)))

    def keys(tree: Any, aux: Any, n: int) -> Iterable[KeyEntry]:
        return map(GetAttrKey, data)

    _register(NodeType(nodetype, lambda tree: (values(tree), statics(tree)), unflatten, keys))
    return nodetype


def _chosen_fields(
    nodetype: Any, data: Sequence[str] | None, meta: Sequence[str] | None, drop: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    name = f"register_dataclass({getattr(nodetype, '__name__', nodetype)})"
    if (data is None) != (meta is None):
        raise ValueError(f"{name}: give data_fields and meta_fields both, or none of them.")
    if not dataclasses.is_dataclass(nodetype):
        if data is None or meta is None:
            raise ValueError(f"{name}: a class that is no dataclass needs data_fields and meta_fields.")
        return tuple(data), tuple(meta)
    fields = [field for field in dataclasses.fields(nodetype) if field.init and field.name not in drop]
    if data is None or meta is None:
        data = [field.name for field in fields if not field.metadata.get("static", False)]
        meta = [field.name for field in fields if field.metadata.get("static", False)]
    given, wanted = sorted([*data, *meta]), sorted(field.name for field in fields)
    if given != wanted:
        raise ValueError(f"{name}: data_fields and meta_fields are {given}, but __init__ takes {wanted}.")
    return tuple(data), tuple(meta)


def _attributes(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda tree: tuple([getattr(tree, name) for name in names])


def static(**kwargs: Any) -> Any:
    """Make a static `dataclasses.field` of a registered dataclass, which is part of the tree structure.

    >>> import dataclasses, tapeless as tl
    >>> @tl.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weights: float
    ...     name: str = static(default="first")
    >>> tl.tree.leaves(Layer(1.0))
    [1.0]
    """
    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(**kwargs, metadata=metadata)


def is_tree_node(typ: type) -> bool:
    """Tell whether instances of exactly this class are nodes."""
    return typ in node_types


# ---- partial


class Partial(functools.partial[Any]):
    """A `functools.partial` that is a pytree node: its arguments are children, its function is auxiliary data.

    >>> Partial(max, 1)(2)
    2
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **keywords: Any) -> "Partial":
        # functools.partial would unwrap a partial, and merge its arguments, which are no children, into ours.
        kept = _KeptFunction(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, kept, *args, **keywords)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _KeptFunction:
    """A wrapper of a `functools.partial`, equal to it, which `functools.partial` does not unwrap."""

    func: Callable[..., Any]

    def __eq__(self, other: object) -> bool:
        return self.func == (other.func if isinstance(other, _KeptFunction) else other)

    def __hash__(self) -> int:
        return hash(self.func)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.func(*args, **keywords)


register_pytree_with_keys(
    Partial,
    lambda tree: (((GetAttrKey("args"), tree.args), (GetAttrKey("keywords"), tree.keywords)), tree.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
    lambda tree: ((tree.args, tree.keywords), tree.func),
)
