"""vmap, and vectorize as in NumPy, with JAX's signatures."""

import functools
import re
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from tapeless.arguments.argument_checks import check_arrays, check_callable
from tapeless.arguments.names import leaf_names, naming, shown_attributes
from tapeless.interpreters import vmap as batching
from tapeless.interpreters.vmap import Dim, check_vmappable
from tapeless.tracer import core, leaks, pytree
from tapeless.tracer.advice.keyword_advice import advise_keywords
from tapeless.tracer.errors import AxisError
from tapeless.tracer.numpy import asarray
from tapeless.tracer.primitives.operands import canonical_axis, shape_of
from tapeless.tracer.primitives.shape import expand_dims, squeeze
from tapeless.tracer.references import Ref, lent, values_of
from tapeless.tracer.rule_arguments import as_argument
from tapeless.tracer.types import aval_of, is_arraylike

# References among the arguments of a mapped function: each example has a part of the array in them.


class BatchedReferences:
    """The references among flat arguments whose mapped axes are at `dims`.

    values: the arguments, with the arrays of mapped references in their places. Those that are not mapped stay what
      they are: the same for all examples.
    """

    def __init__(self, flat: Sequence[Any], dims: Sequence[Dim], size: int) -> None:
        self._dims, self._size = dims, size
        self._mapped = {i: x for i, (x, d) in enumerate(zip(flat, dims)) if d is not None and isinstance(x, Ref)}
        self._inner: list[Ref] = []
        self.values: Final = [self._mapped[i].get() if i in self._mapped else x for i, x in enumerate(flat)]

    def lent(self) -> AbstractContextManager[None]:
        """Let nobody else use the references in a with block. Raises: ValueError if one is mapped twice."""
        return lent(self._mapped.values(), "vmap")

    def given(self, flat: Sequence[Any]) -> Sequence[Any]:
        """Make the arguments of one example from flat values: a reference of its own for each that is mapped."""
        if not self._mapped:
            return flat
        made = {i: Ref(flat[i], core.current_trace(), borrowed=True) for i in self._mapped}
        self._inner = list(made.values())
        return [made.get(i, x) for i, x in enumerate(flat)]

    def after(self) -> list[Any]:
        """Return the arrays that are in the references of one example."""
        return [ref.value for ref in self._inner]

    def put_back(self, outs: Sequence[Any], dims: Sequence[Dim]) -> tuple[Sequence[Any], Sequence[Dim]]:
        """Write the last results into the references; return the others, and where their mapped axes are."""
        n = len(outs) - len(self._mapped)
        for (i, ref), x, d in zip(self._mapped.items(), outs[n:], dims[n:], strict=True):
            place = self._dims[i]
            assert place is not None
            ref.put(batching.move_mapped_axis(x, d, place, self._size))
        return outs[:n], dims[:n]


P = ParamSpec("P")
R = TypeVar("R")


@advise_keywords
def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | None = None,
    *,
    control_flow: str = "auto",
) -> Callable[P, R]:
    """Vectorize a function: map it over an axis of its arguments.

    Args:
      fun: a function of pytrees of arrays.
      in_axes: which axis of each argument runs over the examples; None for an argument that is the same for all. An
        int, or a sequence with one entry per positional argument, each an int, None, or a pytree of these that is a
        prefix of the argument. Keyword arguments are mapped over axis 0.
      out_axes: where that axis goes in the results: an int, None for a result that is the same for all, or a prefix.
      axis_name: a name for the mapped axis, for collectives such as `lax.psum(x, axis_name)`: any hashable but None,
        numbers and tuples. It hides an axis of the same name outside.
      axis_size: number of examples, if no argument says it.
      control_flow: how branches and while loops that differ between examples are run. "select": every branch that some
        example takes is computed for all, and a loop goes on until all are done; an example never sees a branch that it
        does not take, nor does its derivative. "loop": one example after the other. "auto": by what the programs cost;
        `explain_control_flow` says which and why.
      spmd_axis_name: the axis, or a tuple of axes, of a device mesh that the examples are spread over. It is kept with
        the mapped axis, and means something to sharded arrays only: on one device it changes nothing.
    Returns: a function of the same arguments with the mapped axis, giving the results with it.
    Raises: TypeError if `fun` is no function, or for what cannot be a name; ValueError if there is no such
      `control_flow`; when called, ValueError if sizes of mapped axes differ, each argument named, or `in_axes` or
      `out_axes` does not fit, TypeError if they are no ints or a mapped argument is no array.

    >>> import tapeless.numpy as tnp
    >>> vmap(tnp.dot)(tnp.ones((2, 3)), tnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    check_callable("vmap", fun)
    if control_flow not in ("auto", "select", "loop"):
        raise ValueError(f'vmap: control_flow must be "auto", "select" or "loop", not {control_flow!r}.')
    _check_name("axis_name", axis_name, (int, float, complex, tuple, list))
    _check_name("spmd_axis_name", spmd_axis_name, (int, float, complex, list))

    @functools.wraps(fun, shown_attributes(fun))
    def batched(*args: Any, **kwargs: Any) -> Any:
        check_vmappable("an argument", (args, kwargs))
        flat, tree = pytree.flatten((args, kwargs))
        arrays = values_of(flat)
        if any(isinstance(x, Ref) for x in flat):
            args, kwargs = pytree.unflatten(tree, arrays)
        dims = _in_dims(fun, in_axes, args, kwargs, arrays)
        size = _size(fun, args, kwargs, arrays, dims, axis_size)
        references = BatchedReferences(flat, dims, size)
        with references.lent():
            f = _FlatBatched(fun, tree, references)
            mapped = batching.vmap, f, references.values, dims, size, fun, axis_name, spmd_axis_name
            outs, out_dims = leaks.check_leaks(lambda: batching.choosing(control_flow, *mapped))
        outs, out_dims = references.put_back(outs, out_dims)
        return _placed(f, outs, out_dims, out_axes, size)

    return batched


class _FlatBatched:
    """Adapter of a function of pytrees to flat arrays, which remembers the structure of its result."""

    def __init__(self, fun: Callable[..., Any], in_tree: Any, references: BatchedReferences) -> None:
        self.fun, self._in_tree, self._references = fun, in_tree, references
        self.out_tree: Any = None

    def __call__(self, *flat: Any) -> list[Any]:
        args, kwargs = pytree.unflatten(self._in_tree, self._references.given(flat))
        result = self.fun(*args, **kwargs)
        check_vmappable("the result", result)
        check_arrays(f"vmap: the result{{}} of {core.describe_function(self.fun)}", result)
        outs, self.out_tree = pytree.flatten(result)
        return [*outs, *self._references.after()]


def _check_name(parameter: str, name: Any, others: tuple[type, ...]) -> None:
    if isinstance(name, others) or not isinstance(name, Hashable):
        raise TypeError(f"vmap: {parameter} must be a string or another name, not {name!r}.")


def _is_none(x: Any) -> bool:
    return x is None


def _in_dims(fun: Any, in_axes: Any, args: Any, kwargs: Any, flat: Sequence[Any]) -> list[int | None]:
    """Find the mapped axis of each leaf from `in_axes`; None: not mapped."""
    if isinstance(in_axes, (list, tuple)) and len(in_axes) != len(args):
        named = (
            f"\n  Arguments by name are mapped along axis 0: give {', '.join(kwargs)} by position." if kwargs else ""
        )
        entries = "1 entry" if len(in_axes) == 1 else f"{len(in_axes)} entries"
        raise ValueError(
            f"vmap: in_axes has {entries}, {in_axes}, but {core.describe_function(fun)} was called with "
            f"{len(args)} positional argument{'s' * (len(args) != 1)}.{named}"
        )
    if not isinstance(in_axes, (list, tuple, type(None))) and pytree.structure(in_axes) is not pytree.LEAF:
        raise TypeError(
            "vmap: in_axes must be an int, None, or a tuple or list with an entry for each positional argument, "
            f"not {in_axes!r}."
        )
    axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    dims = pytree.broadcast_prefix(axes, args, _is_none, who="vmap", name="in_axes")
    dims += [0] * len(pytree.leaves(kwargs))
    if not all(d is None or is_arraylike(x) for x, d in zip(flat, dims)):
        _check_mapped(fun, args, kwargs, dims)
    try:
        return [_dim(x, d) for x, d in zip(flat, dims)]
    except AxisError:
        raise _no_axis(fun, in_axes, args, kwargs, dims) from None


def _no_axis(fun: Any, in_axes: Any, args: Any, kwargs: Any, dims: Sequence[Any]) -> ValueError:
    """Make the error for the first leaf of the arguments that has no axis where it is to be mapped."""
    leaves, names = pytree.leaves_with_path((args, kwargs)), leaf_names(fun, args, kwargs)
    rows = zip(leaves, names, dims, strict=True)
    path, name, d, aval = next(
        (path, name, d, aval)
        for (path, x), name, d in rows
        if d is not None and not -(aval := aval_of(x)).ndim <= d < aval.ndim
    )
    advice = f"\n  Its last axis is {aval.ndim - 1}." if aval.ndim else _unmapped(in_axes, args, path)
    return ValueError(f"vmap: in_axes names axis {d} of {name}, which is {aval}.{advice}")


def _unmapped(in_axes: Any, args: Any, path: pytree.KeyPath) -> str:
    """Advise how to give all examples the same value of an argument."""
    named, i = path[0].idx, path[1]
    if named:
        return "\n  Arguments by name are mapped along axis 0. Give it by position, and None for it in in_axes."
    if len(path) > 2:
        return "\n  For the same value in all examples, give None for it in in_axes, in a tree like the argument's."
    axes = list(in_axes) if isinstance(in_axes, (list, tuple)) else [in_axes] * len(args)
    axes[i.idx] = None
    if all(axis is None for axis in axes):
        return "\n  There is no axis to map."
    return f"\n  For the same value in all examples, write in_axes={tuple(axes)}."


def _check_mapped(fun: Any, args: Any, kwargs: Any, dims: Sequence[Any]) -> None:
    for (path, x), d in zip(pytree.leaves_with_path((args, kwargs)), dims):
        if d is not None and not is_arraylike(x):
            where = f"argument {naming(fun)(path)} of {core.describe_function(fun)}"
            check_arrays(f"vmap: {where}", x, "\n  Give it in_axes=None.")


def _dim(x: Any, d: Any) -> int | None:
    if d is None:
        return None
    if not isinstance(d, int) or isinstance(d, bool):
        raise TypeError(f"vmap: in_axes must be ints or None, not {d!r}.")
    return canonical_axis(d, aval_of(x).ndim)


def _size(fun: Any, args: Any, kwargs: Any, flat: Sequence[Any], dims: Sequence[int | None], given: Any) -> int:
    sizes = {aval_of(x).shape[d] for x, d in zip(flat, dims) if d is not None}
    if given is not None:
        sizes.add(given)
    if not sizes:
        raise ValueError("vmap: no argument is mapped (in_axes is None everywhere) and axis_size is not given.")
    if len(sizes) > 1:
        raise ValueError(f"vmap: mapped axes differ in size. {_described(fun, args, kwargs, dims, given)}\n" + _ADVICE)
    return sizes.pop()


_ADVICE = "  Give one of them in_axes=None, or make the sizes equal."


def _described(fun: Any, args: Any, kwargs: Any, dims: Sequence[int | None], given: Any) -> str:
    """Describe every mapped leaf: `params['w'] has 4 (float32[3,4], axis 1)`."""
    parts, name = [] if given is None else [f"axis_size is {given}"], naming(fun)
    for (path, x), d in zip(pytree.leaves_with_path((args, kwargs)), dims):
        if d is not None:
            aval = aval_of(x)
            parts.append(f"{name(path)} has {aval.shape[d]} ({aval}, axis {d})")
    return ", ".join(parts) + "."


def _check_out_axes(f: _FlatBatched, outs: Sequence[Any], dims: Sequence[int | None], wanted: Sequence[Any]) -> None:
    """Check that the mapped axis can be where it is wanted in leaves of the result. Raises: TypeError, ValueError."""
    for i, (x, d, w) in enumerate(zip(outs, dims, wanted)):
        if w is None:
            continue
        if not isinstance(w, (int, np.integer)) or isinstance(w, bool):
            raise TypeError(f"vmap: out_axes must be ints or None, not {w!r}.")
        aval = aval_of(x)
        n = aval.ndim - (d is not None)
        if not -n - 1 <= w <= n:
            result = pytree.unflatten(f.out_tree, outs)
            path, one = pytree.leaves_with_path(result)[i][0], [k for j, k in enumerate(aval.shape) if j != d]
            raise ValueError(
                f"vmap: out_axes={w} names no axis of the result{pytree.keystr(path)} of "
                f"{core.describe_function(f.fun)}, which is {aval.update(shape=tuple(one))} for one example.\n"
                f"  The mapped axis can be {-n - 1} to {n}."
            )


def _placed(f: _FlatBatched, outs: Sequence[Any], dims: Sequence[int | None], out_axes: Any, size: int) -> Any:
    """Make the result of f from its leaves, with mapped axes now at `dims`, where `out_axes` wants them."""
    if isinstance(out_axes, int):  # without unflattening: a class may check the axes of its arrays
        wanted: Sequence[Any] = [out_axes] * len(outs)
    else:
        result = pytree.unflatten(f.out_tree, outs)
        wanted = pytree.broadcast_prefix(out_axes, result, _is_none, who="vmap", name="out_axes")
    _check_out_axes(f, outs, dims, wanted)
    return pytree.unflatten(f.out_tree, [_placed_leaf(x, d, w, size, f.fun) for x, d, w in zip(outs, dims, wanted)])


def _placed_leaf(x: Any, d: int | None, wanted: Any, size: int, fun: Any) -> Any:
    if wanted is None:
        if d is not None:
            raise ValueError(
                f"vmap: out_axes is None for a result of {core.describe_function(fun)} that differs between examples: "
                f"{aval_of(x)}."
            )
        return as_argument(x)
    ndim = aval_of(x).ndim + (d is None)
    return batching.move_mapped_axis(x, d, canonical_axis(wanted, ndim), size)


# ---- vectorize -----------------------------------------------------------------------------------------------

Cores = list[tuple[str, ...]]  # names of the core axes of each operand


def vectorize(pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = (), signature: str | None = None) -> Any:
    """Map a function over leading axes, broadcasting as NumPy does: nested `vmap`.

    Args:
      pyfunc: a function of arrays, giving an array or a tuple of arrays.
      excluded: positions of arguments that are passed on as they are. None and keyword arguments always are.
      signature: such as "(n,m),(m)->(n)": the axes that pyfunc itself has; none if None.
    Returns: a function of the same arguments; leading axes are broadcast and come first in the results.
    Raises: ValueError, TypeError if the signature is malformed, or arguments or results do not fit it.

    >>> import tapeless.numpy as tnp
    >>> vectorize(tnp.dot, signature="(n,m),(m)->(n)")(tnp.ones((2, 3)), tnp.ones((4, 3))).shape
    (4, 2)
    """
    check_callable("vectorize", pyfunc)
    _check_excluded(excluded)
    given = None if signature is None else _parsed(signature)

    @functools.wraps(pyfunc, shown_attributes(pyfunc))
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        positions = [i for i, x in enumerate(args) if i not in excluded and x is not None]
        cores = _cores_of(given, signature, args, excluded)
        arrays = [asarray(args[i]) for i in positions]
        sizes = _core_sizes([cores[i] for i in positions], arrays, signature)

        def of_arrays(*xs: Any) -> Any:
            whole = dict(zip(positions, xs))
            out = pyfunc(*[whole.get(i, x) for i, x in enumerate(args)], **kwargs)
            if given is not None:
                _check_results(out, given[1], sizes, signature)
            return out

        return _broadcast_over(of_arrays, arrays, [len(cores[i]) for i in positions])

    return vectorized


def _broadcast_over(f: Callable[..., Any], arrays: list[Any], core_ranks: list[int]) -> Any:
    """Map f over the leading axes of all arrays; axes of length 1 are not repeated."""
    loops = [shape_of(x)[: aval_of(x).ndim - k] for x, k in zip(arrays, core_ranks)]
    rank = _common_rank(arrays, loops)
    runs = [[False] * (rank - len(loop)) + [n != 1 for n in loop] for loop in loops]
    axes = [tuple(0 if some else None for some in each) for each in zip(*runs)]
    for in_axes in reversed(axes):
        f = vmap(f, in_axes) if any(d is not None for d in in_axes) else f
    out = f(*[squeeze(x, [i for i, n in enumerate(loop) if n == 1]) for x, loop in zip(arrays, loops)])
    lone = [i for i, in_axes in enumerate(axes) if not any(d is not None for d in in_axes)]
    return pytree.tree_map(lambda x: expand_dims(x, lone), out)


def _common_rank(arrays: list[Any], loops: list[tuple[int, ...]]) -> int:
    try:
        return len(np.broadcast_shapes(*loops))
    except ValueError:
        given = " and ".join(str(aval_of(x)) for x in arrays)
        raise ValueError(f"vectorize: leading axes {loops} of {given} cannot be broadcast together.") from None


def _check_excluded(excluded: Any) -> None:
    for e in excluded:
        if not isinstance(e, (int, str)):
            raise TypeError(f"vectorize: excluded names arguments by position or name, not {e!r}.")
        if isinstance(e, int) and e < 0:
            raise ValueError(f"vectorize: excluded counts arguments from the front, so {e} is none.")


_CORE = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"(?:{_CORE}(?:,{_CORE})*)?->{_CORE}(?:,{_CORE})*")


def _parsed(signature: str) -> tuple[Cores, Cores]:
    """Parse the core axes of arguments and results. Raises: ValueError if the signature is none."""
    compact = re.sub(r"\s", "", signature)
    if not _SIGNATURE.fullmatch(compact):
        raise ValueError(f'vectorize: {signature!r} is not a signature such as "(n,m),(m)->(n)".')
    ins, outs = ([tuple(re.findall(r"\w+", core)) for core in re.findall(_CORE, side)] for side in compact.split("->"))
    return ins, outs


def _cores_of(given: Any, signature: Any, args: Any, excluded: Any) -> dict[int, tuple[str, ...]]:
    """List the core axes of each argument, by position."""
    positions = [i for i in range(len(args)) if i not in excluded]
    if given is None:
        return dict.fromkeys(positions, ())
    if len(given[0]) != len(positions):
        raise TypeError(
            f"vectorize: the signature {signature!r} has {len(given[0])} arguments, but {len(positions)} were given."
        )
    cores = dict(zip(positions, given[0]))
    for i, axes in cores.items():
        if args[i] is None and axes:
            raise ValueError(f"vectorize: argument {i} is None, but in the signature {signature!r} it has axes {axes}.")
    return cores


def _core_sizes(cores: Cores, arrays: list[Any], signature: Any) -> dict[str, int]:
    """Return the lengths of the core axes."""
    sizes: dict[str, int] = {}
    for axes, x in zip(cores, arrays):
        shape = shape_of(x)
        if len(shape) < len(axes):
            raise ValueError(f"vectorize: {aval_of(x)} has too few axes for {axes} in the signature {signature!r}.")
        _match(axes, shape[len(shape) - len(axes) :], sizes, f"argument {aval_of(x)}", signature)
    return sizes


def _match(axes: Sequence[str], shape: Sequence[int], sizes: dict[str, int], what: str, signature: Any) -> None:
    for name, n in zip(axes, shape, strict=True):
        known = sizes.setdefault(name, int(name) if name.isdecimal() else n)
        if n != known:
            raise ValueError(
                f"vectorize: axis {name!r} of the signature {signature!r} has length {known}, but {n} in the {what}."
            )


def _check_results(out: Any, cores: Cores, sizes: dict[str, int], signature: Any) -> None:
    outs: Any = out if isinstance(out, tuple) else (out,)
    sizes = dict(sizes)
    if len(outs) != len(cores):
        raise TypeError(
            f"vectorize: the signature {signature!r} has {len(cores)} results, but the function returned {out!r}."
        )
    for axes, x in zip(cores, outs):
        # An object may say its shape, and be a pytree of arrays of others.
        kind, shape = (aval_of(x), shape_of(x)) if is_arraylike(x) or not hasattr(x, "shape") else (type(x), x.shape)
        if len(shape) != len(axes):
            raise ValueError(f"vectorize: the result {kind} does not have the axes {axes} of {signature!r}.")
        _match(axes, shape, sizes, f"result {kind}", signature)
