"""Generate straight-line Python code for one structure: functions that flatten its trees, build them, call with them.

A compiled function sees trees of the same few structures at each call. Walking a tree costs about a microsecond for
each node, code written for its structure a tenth: `{'a': *, 'b': (*, None)}` is flattened by

    def match(t0):
        if type(t0) is not dict or len(t0) != 2: return None
        t1, t2 = t0[k0], t0[k1]
        if type(t2) is not tuple or len(t2) != 2: return None
        t3, t4 = t2
        if t4 is not None: return None
        leaves = [t1, t3]
        return leaves if are_leaves(map(type, leaves)) else None

Left out: the types of dict keys are not compared, so a dict with equal keys of other types matches.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

_FILE: Final = "<frozen tapeless>"  # like Python's own modules without files: for warnings no frame of the user's


class TreeStructure(Protocol):
    """The part of a PyTreeDef's interface that generated code needs."""

    node: Any
    num_leaves: int

    @property
    def kind(self) -> type | None: ...

    @property
    def children(self) -> Iterable[Any]: ...


class _Code:
    """A function while it is generated: its lines, and the constants that they name."""

    def __init__(self, missed: Any = None) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {"missed": missed}
        self.variables = 0
        self._names: dict[int, str] = {}  # of constants, by identity

    def variable(self) -> str:
        self.variables += 1
        return f"t{self.variables - 1}"

    def constant(self, value: Any) -> str:
        name = self._names.setdefault(id(value), f"k{len(self.constants)}")
        self.constants[name] = value
        return name

    def leave_if(self, conditions: Sequence[str]) -> None:
        self.lines += [f"if {' or '.join(conditions)}: return missed"] * bool(conditions)

    def function(self, header: str) -> Callable[..., Any]:
        text = "\n    ".join([f"def function({header}):", *self.lines])
        exec(compile(text, _FILE, "exec"), self.constants)
        return self.constants.pop("function")


# ---- matching


def matcher(
    treedef: TreeStructure, are_leaves: Callable[[Iterable[type]], bool], opener: Callable[[type], Callable[[Any], Any]]
) -> Callable[[Any], list[Any] | None]:
    """Generate a function of a tree that returns its leaves if it has this structure, else None.

    Args:
      treedef: the structure.
      are_leaves: tells whether instances of all these types are known to be leaves.
      opener: returns the function that splits an instance of a class into children and node.
    """
    code = _Code()
    leaves: list[str] = []
    root = code.variable()
    _match(code, treedef, root, leaves, opener)
    code.lines.append(f"leaves = [{', '.join(leaves)}]")
    code.lines.append(f"return leaves if {code.constant(are_leaves)}(map(type, leaves)) else None")
    return code.function(root)


def _match(code: _Code, treedef: TreeStructure, tree: str, leaves: list[str], opener: Any) -> None:
    cls = treedef.kind
    if cls is None:
        leaves.append(tree)
        return
    children = list(treedef.children)
    names = [code.variable() for _ in children]
    unpacked = f"{', '.join(names)}, = " if names else ""
    if cls is type(None):
        code.lines.append(f"if {tree} is not None: return missed")
    elif cls is tuple or cls is list:
        code.lines.append(f"if type({tree}) is not {cls.__name__} or len({tree}) != {len(names)}: return missed")
        code.lines += [unpacked + tree] * bool(names)
    elif cls is dict:
        code.lines.append(f"if type({tree}) is not dict or len({tree}) != {len(names)}: return missed")
        items = [f"{tree}[{code.constant(key)}]" for key in treedef.node.aux]
        code.lines += [f"try: {unpacked}{', '.join(items)},", "except KeyError: return missed"] * bool(names)
    else:
        opened, node = code.constant(opener(cls)), code.constant(treedef.node)
        code.lines.append(f"if type({tree}) is not {code.constant(cls)}: return missed")
        code.lines.append(f"children, node = {opened}({tree})")
        code.lines.append(f"if len(children) != {len(names)} or not {node}.same(node): return missed")
        code.lines += [unpacked + "children"] * bool(names)
    for child, name in zip(children, names, strict=True):
        _match(code, child, name, leaves, opener)


# ---- calling

Constant: TypeAlias = Callable[[Any], str]  # gives a value a name in generated code
StaticCode: TypeAlias = Callable[[str, Constant], str]
MISSED: Final = object()
_UNROLLED = 100  # leaves: code for each is the fastest, and takes long to compile


class WrappedLeaf(NamedTuple):
    """A leaf of class `cls` around a value: it has the object `tag` and the value as its attributes of these names.

    `cls(value)` makes one, and so does setting both attributes of a new object.
    forgotten: an attribute that is deleted, if it is set, before the value is read; "" for none.
    """

    cls: type
    tag: Any
    tag_name: str
    value_name: str
    forgotten: str = ""


class ReadLeaf(NamedTuple):
    """A leaf of class `cls` that is read by a function.

    others: condition that it is another one than expected; "" if its class is enough. `{x}` stands for the leaf, `{0}`,
      `{1}`, ... for `constants`.
    """

    cls: type
    read: Callable[[Any], Any]
    others: str = ""
    constants: tuple[Any, ...] = ()


class CallCode(NamedTuple):
    """The parts of the code of a call that depend on what is called.

    arguments, results: the structures of `(args, kwargs)`, without the static ones, and of the result.
    statics: by position or name, what writes the condition that a static argument is another one.
    leaves: those of the arguments.
    before: values that come before those of the leaves.
    run: maps a list of all these values to a list of results.
    made: the leaves of the result; None for one that `run` makes.
    build: makes a result of its leaves, if code for its structure cannot.
    """

    arguments: TreeStructure
    results: TreeStructure
    statics: Mapping[int | str, StaticCode]
    leaves: Sequence[WrappedLeaf | ReadLeaf]
    before: Sequence[Any]
    run: Callable[[list[Any]], Sequence[Any]]
    made: Sequence[WrappedLeaf | None]
    build: Callable[[list[Any]], Any] | None = None


def caller(
    parts: CallCode, opener: Callable[[type], Callable[[Any], Any]]
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Generate a function of `(args, kwargs)` that makes a call if they are as expected, else returns `MISSED`.

    Nothing is read before everything is found to be as expected: reading may cost something, or raise.

    Args:
      opener: returns the function that splits an instance of a class into children and node.
    """
    code = _Code(missed=MISSED)
    found: list[str] = []
    places = _unpack_arguments(code, parts.arguments, parts.statics)
    code.leave_if([parts.statics[where](name, code.constant) for where, name, child in places if child is None])
    for _, name, child in places:
        if child is not None:
            _match(code, child, name, found, opener)
    values = [*map(code.constant, parts.before), *_read_leaves(code, parts.leaves, found)]
    code.lines.append(f"results = {code.constant(parts.run)}([{', '.join(values)}])")
    code.lines.append(f"return {_make_results(code, parts)}")
    return code.function("args, kwargs")


def _read_leaves(code: _Code, leaves: Sequence[WrappedLeaf | ReadLeaf], names: Sequence[str]) -> list[str]:
    """Write the conditions that leaves are other ones; return the expressions that read them."""
    wrapped = [i for i, leaf in enumerate(leaves) if isinstance(leaf, WrappedLeaf)]
    if len(wrapped) <= _UNROLLED:
        wrapped = []
    apart = {i: (names[i], leaf) for i, leaf in enumerate(leaves)}
    _check_together(code, [apart.pop(i) for i in wrapped])
    code.leave_if([_is_other(code, name, leaf) for name, leaf in apart.values()])
    _forget(code, leaves, names)
    _unwrap_together(code, [names[i] for i in wrapped], [leaves[i] for i in wrapped])
    return [_reading(code, name, leaves[i]) if i in apart else name for i, name in enumerate(names)]


def _forget(code: _Code, leaves: Sequence[WrappedLeaf | ReadLeaf], names: Sequence[str]) -> None:
    by_attribute: dict[str, list[str]] = {}
    for name, leaf in zip(names, leaves, strict=True):
        if isinstance(leaf, WrappedLeaf) and leaf.forgotten:
            by_attribute.setdefault(leaf.forgotten, []).append(name)
    for attribute, found in by_attribute.items():
        code.lines.append(f"for leaf in ({', '.join(found)},):")
        code.lines.append(f"    leaf.{attribute} = None; del leaf.{attribute}")  # setting it first is no error


def _check_together(code: _Code, wrapped: Sequence[tuple[str, Any]]) -> None:
    if wrapped:
        names, leaves = zip(*wrapped, strict=True)
        classes, tags = tuple([leaf.cls for leaf in leaves]), tuple([leaf.tag for leaf in leaves])
        get = code.constant(attrgetter(leaves[0].tag_name))
        code.lines.append(f"leaves = {', '.join(names)},")
        code.leave_if([f"tuple(map(type, leaves)) != {code.constant(classes)}"])
        code.leave_if([f"tuple(map({get}, leaves)) != {code.constant(tags)}"])


def _unwrap_together(code: _Code, names: Sequence[str], leaves: Sequence[Any]) -> None:
    if names:
        get = code.constant(attrgetter(leaves[0].value_name))
        code.lines.append(f"{', '.join(names)}, = map({get}, leaves)")


def _is_other(code: _Code, name: str, leaf: WrappedLeaf | ReadLeaf) -> str:
    """Return the condition that a leaf is another one than expected."""
    wrong = f"type({name}) is not {code.constant(leaf.cls)}"
    if isinstance(leaf, WrappedLeaf):
        return f"{wrong} or {name}.{leaf.tag_name} is not {code.constant(leaf.tag)}"
    others = leaf.others.format(*map(code.constant, leaf.constants), x=name)
    return f"{wrong} or {others}" if others else wrong


def _reading(code: _Code, name: str, leaf: WrappedLeaf | ReadLeaf) -> str:
    """Return the expression that reads a leaf."""
    return f"{name}.{leaf.value_name}" if isinstance(leaf, WrappedLeaf) else f"{code.constant(leaf.read)}({name})"


def _make_results(code: _Code, parts: CallCode) -> str:
    """Write what makes the result from `results`; return its expression."""
    names, classes = [code.variable() for _ in parts.made], {leaf and leaf.cls for leaf in parts.made}
    alike = classes.pop() if len(names) > _UNROLLED and len(classes) == 1 else None
    results = f"map({code.constant(alike)}, results)" if alike else "results"
    code.lines += [f"{', '.join(names)}, = {results}"] * bool(names)
    made = names if alike else [_make(code, name, leaf) for name, leaf in zip(names, parts.made, strict=True)]
    if parts.build is not None:
        return f"{code.constant(parts.build)}([{', '.join(made)}])"
    return _build(code, parts.results, iter(made))


def _make(code: _Code, value: str, leaf: WrappedLeaf | None) -> str:
    """Write what wraps a value; return the name of the leaf."""
    if leaf is None:
        return value
    made = code.variable()
    code.lines.append(f"{made} = {code.constant(object.__new__)}({code.constant(leaf.cls)})")
    code.lines.append(f"{made}.{leaf.value_name}, {made}.{leaf.tag_name} = {value}, {code.constant(leaf.tag)}")
    return made


def _unpack_arguments(
    code: _Code, arguments: TreeStructure, statics: Mapping[int | str, StaticCode]
) -> list[tuple[int | str, str, TreeStructure | None]]:
    """Write what unpacks the arguments; return place, variable and structure of each, None for a static one."""
    positional, named = arguments.children
    given = iter(positional.children)
    count = len(positional.children) + sum([isinstance(where, int) for where in statics])
    places = [(i, code.variable(), None if i in statics else next(given)) for i in range(count)]
    by_name: dict[str, Any] = dict(zip(named.node.aux, named.children, strict=True))
    by_name.update({where: None for where in statics if isinstance(where, str)})
    keywords = [(name, code.variable(), child) for name, child in by_name.items()]
    code.lines.append(f"if len(args) != {len(places)} or len(kwargs) != {len(keywords)}: return missed")
    code.lines += [f"{''.join(f'{name}, ' for _, name, _ in places)}= args"] * bool(places)
    if keywords:
        unpacked = "".join(f"{name}, " for _, name, _ in keywords)
        items = ", ".join(f"kwargs[{code.constant(name)}]" for name, _, _ in keywords)
        code.lines += [f"try: {unpacked}= {items},", "except KeyError: return missed"]
    return [*places, *keywords]


# ---- building


def builder(treedef: TreeStructure) -> Callable[[Iterable[Any]], Any]:
    """Generate a function that builds a tree of this structure from exactly `num_leaves` leaves."""
    code = _Code()
    leaves = [code.variable() for _ in range(treedef.num_leaves)]
    code.lines += [f"{', '.join(leaves)}, = leaves"] * bool(leaves)
    code.lines.append(f"return {_build(code, treedef, iter(leaves))}")
    return code.function("leaves")


def _build(code: _Code, treedef: TreeStructure, leaves: Any) -> str:
    cls = treedef.kind
    if cls is None:
        return next(leaves)
    parts = [_build(code, child, leaves) for child in treedef.children]
    built = code.variable()
    code.lines.append(f"{built} = {_expression(code, treedef, parts)}")
    return built


def _expression(code: _Code, treedef: TreeStructure, parts: list[str]) -> str:
    cls, items = treedef.kind, ", ".join(parts)
    if cls is type(None):
        return "None"
    if cls is list:
        return f"[{items}]"
    children = f"({items},)" if parts else "()"
    if cls is tuple:
        return children
    if cls is dict:
        keys = map(code.constant, treedef.node.aux)
        return f"{{{', '.join(f'{key}: {part}' for key, part in zip(keys, parts, strict=True))}}}"
    node_type, aux = treedef.node.type, treedef.node.aux
    return f"{code.constant(node_type.unflatten)}({code.constant(aux)}, {children})"
