"""Errors for a loop carry that changes its structure or types, and for differing branches: every leaf, by path."""

from collections.abc import Iterator, Sequence
from typing import Any

from tapeless.tracer import pytree
from tapeless.tracer.advice import widths
from tapeless.tracer.core import describe_function
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike


def structure_error(who: str, fun: Any, before: Any, after: Any) -> TypeError:
    """Make the error for a body that returns a carry of another structure."""
    return TypeError(
        f"{who}: {describe_function(fun)} changes the structure of the carry.\n"
        + "".join(
            f"  carry{path} comes in as {x}, goes out as {y}.\n" for path, x, y in structure_differences(before, after)
        )
        + "  Return a carry of the structure that the initial one has."
    )


def carry_error(
    who: str,
    fun: Any,
    init: Any,
    before: Sequence[ShapedArray],
    after: Sequence[ShapedArray],
    same: Sequence[bool],
    others: Sequence[Any] = (),
) -> TypeError:
    """Make the error for a body that returns a carry of other types; `same` flags the leaves that agree.

    `others` are values that the body reads besides, to tell where a width may come from.
    """
    paths = [pytree.keystr(path) for path, _ in pytree.leaves_with_path(init)]
    lines = [
        f"  carry{path} comes in as {x}, goes out as {y}.\n"
        for path, x, y, fine in zip(paths, before, after, same)
        if not fine
    ]
    return TypeError(
        f"{who}: {describe_function(fun)} changes the type of the carry.\n"
        + "".join(lines)
        + "  Convert what the body returns (astype, reshape), or begin with the type that it gives."
        + (widths.advice([*pytree.leaves(init), *others]) if _differ_in_width(before, after) else "")
    )


def _differ_in_width(before: Sequence[ShapedArray], after: Sequence[ShapedArray]) -> bool:
    return any(x.shape == y.shape and widths.are_mixed([x.dtype, y.dtype]) for x, y in zip(before, after))


def branches_error(
    who: str, names: Sequence[str], functions: Sequence[Any], results: Sequence[Any], others: Sequence[Any] = ()
) -> TypeError:
    """Make the error for branches whose results differ in structure or type; `others` are values that they read."""
    mixed = False
    which = ", ".join(f"{name} is {describe_function(f)}" for name, f in zip(names, functions))
    other = next((i for i, x in enumerate(results) if pytree.structure(x) != pytree.structure(results[0])), None)
    if other is None:
        kind, lines, advice = "types", _type_lines(names, results), "Convert them (astype, broadcast_to)"
        columns = zip(*map(pytree.leaves, results), strict=True)
        mixed = any(widths.are_mixed([aval_of(x).dtype for x in column]) for column in columns)
    else:
        kind, advice = "structures", "Return one structure, with zeros for what a branch lacks"
        lines = [
            f"  result{path} is {x} from {names[0]}, {y} from {names[other]}.\n"
            for path, x, y in structure_differences(results[0], results[other])
        ]
    told = f"{who}: the branches return different {kind}: {which}.\n{''.join(lines)}  {advice}: {_SAME}"
    return TypeError(told + (widths.advice(others) if mixed else ""))


_SAME = "all branches must return the same, whichever is taken."


def _type_lines(names: Sequence[str], results: Sequence[Any]) -> list[str]:
    lines: list[str] = []
    for rows in zip(*map(pytree.leaves_with_path, results), strict=True):
        types = [str(aval_of(x)) for _, x in rows]
        if len(set(types)) > 1:
            said = [f"{text} from {_listed(names, types, text)}" for text in dict.fromkeys(types)]
            lines.append(f"  result{pytree.keystr(rows[0][0])} is {', '.join(said)}.\n")
    return lines


def _listed(names: Sequence[str], types: Sequence[str], text: str) -> str:
    return " and ".join(name for name, found in zip(names, types) if found == text)


def structure_differences(x: Any, y: Any) -> Iterator[tuple[str, str, str]]:
    """Find the nodes in which two trees differ: the path, and a description of each."""
    texts = [{pytree.keystr(path): _described(leaf) for path, leaf in pytree.leaves_with_path(tree)} for tree in (x, y)]
    for path, *nodes in pytree.differences(*map(pytree.structure, (x, y))):
        at = pytree.keystr(path)
        this, that = (pytree.describe_node(node, leaf.get(at, "a leaf")) for node, leaf in zip(nodes, texts))
        yield at, this, that


def _described(leaf: Any) -> str:
    return str(aval_of(leaf)) if is_arraylike(leaf) else type(leaf).__name__
