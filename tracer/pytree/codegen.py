"""Generate straight-line Python code for one structure: a function that flattens its trees, and one that builds them.

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

from collections.abc import Callable, Iterable
from typing import Any, Protocol


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

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.variables = 0

    def variable(self) -> str:
        self.variables += 1
        return f"t{self.variables - 1}"

    def constant(self, value: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = value
        return name

    def function(self, header: str) -> Callable[..., Any]:
        text = "\n    ".join([f"def function({header}):", *self.lines])
        exec(text, self.constants)
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
        code.lines.append(f"if {tree} is not None: return None")
    elif cls is tuple or cls is list:
        code.lines.append(f"if type({tree}) is not {cls.__name__} or len({tree}) != {len(names)}: return None")
        code.lines += [unpacked + tree] * bool(names)
    elif cls is dict:
        code.lines.append(f"if type({tree}) is not dict or len({tree}) != {len(names)}: return None")
        items = [f"{tree}[{code.constant(key)}]" for key in treedef.node.aux]
        code.lines += [f"try: {unpacked}{', '.join(items)},", "except KeyError: return None"] * bool(names)
    else:
        opened, node = code.constant(opener(cls)), code.constant(treedef.node)
        code.lines.append(f"if type({tree}) is not {code.constant(cls)}: return None")
        code.lines.append(f"children, node = {opened}({tree})")
        code.lines.append(f"if len(children) != {len(names)} or not {node}.same(node): return None")
        code.lines += [unpacked + "children"] * bool(names)
    for child, name in zip(children, names, strict=True):
        _match(code, child, name, leaves, opener)


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
