"""Jacobians and Hessians of functions of pytrees: a linear map, of every element of a basis at once.

A result has the structure of the function's result, and in the place of each leaf the structure of the argument.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from tapeless.arguments.argument_checks import check_callable, no_derivative
from tapeless.arguments.names import argument_name, name_derived, shown_attributes
from tapeless.batch.vmap import vmap
from tapeless.differentiate.argnums import canonical_argnums, check_argnums, check_inputs, with_arguments
from tapeless.differentiate.autodiff import FlatFunction, linearize_of, vjp_of
from tapeless.differentiate.chunk_sizes import ChunkChoice
from tapeless.differentiate.linear_maps import LinearMap, basis
from tapeless.differentiate.tangents import own_array
from tapeless.interpreters import jvp as forward
from tapeless.interpreters import vmap as batching
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import core, dtypes, leaks, pytree
from tapeless.tracer.primitives.control_flow import scan
from tapeless.tracer.primitives.indexing import dynamic_update_slice_in_dim
from tapeless.tracer.primitives.shape import index_in_dim, reshape, split
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of

Aux = TypeVar("Aux")
P = ParamSpec("P")


@overload
def jacfwd(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    chunk_size: int | None = None,
    memory_budget: int | float | str | None = None,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
    memory_budget: int | float | str | None = None,
) -> Callable[P, Any]: ...
def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
    memory_budget: int | float | str | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the Jacobian of a function in forward mode, one column per element of the input.

    All columns are computed along with the value, and no residuals are kept. Chunks of columns are computed by a loop
    over one linearization instead, of which loops of `fun` keep the residuals of all their steps.

    Args:
      fun: maps pytrees of arrays to a pytree of arrays, or to (that, aux) if `has_aux`.
      argnums: which positional arguments to differentiate, real; several give a tuple in the place of each.
      holomorphic: promise that `fun` is, and arguments and results are complex.
      chunk_size: how many columns to compute at a time, where all are large; all if None.
      memory_budget: how many bytes may be live at once beyond arguments and results, as predicted: bytes, a text such
        as "2GB", or a part from 0.0 to 1.0 of what all columns together need. The largest chunk that keeps it is
        chosen, for which `fun` is traced once more; 0 asks for the fewest.
    Returns: a function of the same arguments; its result is structured like that of `fun`, each leaf like the
      argument, each leaf of these [shape of the result.., shape of the argument..]. With `has_aux` also aux.
    Raises: TypeError if `fun` is no function, ValueError for a `chunk_size` that is no positive integer, or beside a
      budget; when called, TypeError if an argument is not real, or not complex if holomorphic, ValueError naming the
      fewest bytes if the budget cannot be kept.

    >>> import tapeless.numpy as tnp
    >>> jacfwd(lambda x: x**2)(tnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    chunks = ChunkChoice("jacfwd", chunk_size, memory_budget)
    return _forward("jacfwd", fun, argnums, has_aux, holomorphic, chunks, fun)


def _forward(
    who: str, fun: Any, argnums: Any, has_aux: bool, holomorphic: bool, chunks: ChunkChoice, of: Any
) -> Callable[..., Any]:
    """Make the function that `jacfwd` returns; messages name `who` and the function `of`.

    Chunks share one linearization. So do the columns of a gradient, `fun` for a Hessian: it has residuals in any case.
    """
    at_once = chunks.at_once and fun is of
    check_callable(who, fun)
    check_argnums(who, argnums)

    @name_derived("jacobian" if fun is of else who, of, same_arguments=True)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen, rest = differentiated_arguments(who, fun, argnums, args, kwargs, holomorphic, None, of)
        for i, x in zip(canonical_argnums(who, argnums, args, of), chosen):
            check_kind(who, "argument", argument_name(of, i), x, of, holomorphic)
        ins, tree = _types(chosen), pytree.structure(chosen)
        if at_once and any(t.size for t in ins):
            values, columns, *aux = _at_once(who, rest, chosen, ins, has_aux)
        else:
            values, push, *aux = linearize_of(who, rest, chosen, has_aux)
            size = chunks.of(_without_aux(rest, has_aux), chosen, ins)
            columns = _of_basis(push, tree, ins, _types(values), -1, size)
        if holomorphic:
            check_kind(who, "result", "", values, of, holomorphic)
        return assemble_blocks(_blocks_of_columns(columns, _types(values), ins), values, chosen, argnums, aux)

    return jacobian


@overload
def jacrev(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    chunk_size: int | None = None,
    memory_budget: int | float | str | None = None,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | None = None,
    memory_budget: int | float | str | None = None,
) -> Callable[P, Any]: ...
def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | None = None,
    memory_budget: int | float | str | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the Jacobian of a function in reverse mode, one row per element of the result.

    Args:
      allow_int: differentiate integers too, giving float0 zeros.
      chunk_size, memory_budget: how many rows to compute at a time, and how many bytes that may take; as for `jacfwd`.
      others: as for `jacfwd`; arguments may be complex, results are real unless holomorphic.
    Returns: as `jacfwd`.
    Raises: as `jacfwd`; when called, TypeError if an argument is not differentiable, or a result not real.

    >>> import tapeless.numpy as tnp
    >>> jacrev(lambda x: x**2)(tnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    chunks = ChunkChoice("jacrev", chunk_size, memory_budget)
    return _reverse("jacrev", fun, argnums, has_aux, holomorphic, allow_int, chunks)


@overload
def jacobian(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    chunk_size: int | None = None,
    memory_budget: int | float | str | None = None,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacobian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | None = None,
    memory_budget: int | float | str | None = None,
) -> Callable[P, Any]: ...
def jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | None = None,
    memory_budget: int | float | str | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the Jacobian of a function, in the mode that takes fewer operations.

    The function is linearized. All columns take its linear program as often as arguments have elements, all rows the
    transposed program as often as results have: the fewer operations, counted as `tl.cost` does, decide. For equal
    numbers, as of square Jacobians, the mode is forward. Where only one mode is allowed, it is that one: forward for
    complex results, integer results (whose blocks are float0 zeros) and `while_loop`, reverse for complex arguments.
    With `holomorphic` or `allow_int` it is reverse.

    Args: as `jacrev`.
    Returns: as `jacrev`. Loops of `fun` keep the residuals of all their steps; `jacfwd` does not.
    Raises: as `jacrev`, but results may be complex, or integers, where arguments are real.

    >>> import tapeless.numpy as tnp
    >>> jacobian(lambda x: x**2)(tnp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    chunks = ChunkChoice("jacobian", chunk_size, memory_budget)
    return _reverse("jacobian", fun, argnums, has_aux, holomorphic, allow_int, chunks, not (holomorphic or allow_int))


def _reverse(
    who: str,
    fun: Any,
    argnums: Any,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    chunks: ChunkChoice,
    either: bool = False,
) -> Callable[..., Any]:
    """Make the function that `jacrev` returns; messages name `who`. It may choose the mode, if `either`."""
    check_callable(who, fun)
    check_argnums(who, argnums)

    @name_derived("jacobian", fun, same_arguments=True)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen, rest = differentiated_arguments(who, fun, argnums, args, kwargs, holomorphic, allow_int, fun)
        values, pull, *aux = vjp_of(who, rest, chosen, has_aux)
        outs, ins = _types(values), _types(chosen)
        forward_mode = either and _is_forward(pull.linear_map, ins, outs)
        if not forward_mode:
            check_kind(who, "result", "", values, fun, holomorphic)
        size = chunks.of(_without_aux(rest, has_aux), chosen, ins if forward_mode else outs)
        if forward_mode:
            columns = _of_basis(pull.linear_map, pytree.structure(chosen), ins, outs, -1, size)
            blocks = _blocks_of_columns(columns, outs, ins)
        else:
            blocks = _blocks_of_rows(_of_basis(pull, pytree.structure((values,)), outs, ins, 0, size), outs, ins)
        return assemble_blocks(blocks, values, chosen, argnums, aux)

    return jacobian


def _is_forward(linear_map: LinearMap, ins: list[ShapedArray], outs: list[ShapedArray]) -> bool:
    """Tell whether forward mode is the one that is allowed, or else takes no more operations than reverse mode."""
    if any(dtypes.is_complex(t.dtype) for t in ins):
        return False
    if any(dtypes.is_complex(t.dtype) or t.dtype == dtypes.float0 for t in outs):
        return True
    try:
        transposed = linear_map.T
    except NotImplementedError:  # a loop of an unknown number of steps
        return True
    columns, rows = (sum([t.size for t in types]) for types in (ins, outs))
    return columns * _work(linear_map) <= rows * _work(transposed)


def _work(linear_map: LinearMap) -> int:
    cost = linear_map.cost
    return cost.work - cost.drops


@overload
def hessian(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    chunk_size: int | None = None,
    memory_budget: int | float | str | None = None,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
    memory_budget: int | float | str | None = None,
) -> Callable[P, Any]: ...
def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
    memory_budget: int | float | str | None = None,
) -> Callable[..., Any]:
    """Make a function that computes the second derivatives of a function, `jacfwd(jacrev(fun))`.

    Args: as `jacfwd`. Chunks are of columns, and of rows of the first derivative; a budget is for the columns.
    Returns: a function of the same arguments; its result is structured like that of `fun`, each leaf like the
      argument, each leaf of these like the argument again. With `has_aux` also aux.
    Raises: as `jacrev`.

    >>> import tapeless.numpy as tnp
    >>> hessian(lambda x: x[0] * x[1])(tnp.array([1.0, 2.0]))
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    chunks = ChunkChoice("hessian", chunk_size, memory_budget)
    rows = _reverse("hessian", fun, argnums, has_aux, holomorphic, False, ChunkChoice("hessian", chunk_size, None))
    return _forward("hessian", rows, argnums, has_aux, holomorphic, chunks, fun)


# ---- the linear map on a basis -------------------------------------------------------------------------------


def _at_once(who: str, rest: Any, chosen: tuple[Any, ...], given: list[ShapedArray], has_aux: bool) -> tuple[Any, ...]:
    """Compute the value and all columns by one vectorized jvp, whose primal is not mapped: loops keep no residuals.

    Returns: (value, columns), with aux as third if `has_aux`; a column for each leaf of the value.
    """
    flat, tree = pytree.flatten(chosen)
    f, primals = FlatFunction(who, rest, tree, has_aux), [own_array(x) for x in flat]

    def pushed(*tangents: Any) -> list[Any]:
        values, found = forward.jvp(f, primals, tangents, rest, who)
        results = zip(values[: f.out_tree.num_leaves], found)
        return [*values, *[instantiate(t) for x, t in results if dtypes.is_inexact(aval_of(x).dtype)]]

    total, in_dims = sum(t.size for t in given), [0] * len(given)
    mapped = batching.vmap, pushed, basis(given, 0, total), in_dims, total, rest
    outs, dims = leaks.check_leaks(lambda: batching.choosing("auto", *mapped))
    pairs = iter(zip(outs, dims))
    values = [_of_any_example(*next(pairs)) for _ in range(f.num_results)]
    types = [aval_of(x).tangent() for x in values[: f.out_tree.num_leaves]]
    columns = [
        _nothing(t, total, -1)
        if t.dtype == dtypes.float0
        else batching.move_mapped_axis(*next(pairs), len(t.shape), total)
        for t in types
    ]
    result = f.unflatten(values), columns
    return (*result, f.aux(values)) if has_aux else result


def _of_any_example(x: Any, d: int | None) -> Any:
    """Return a value that is the same for all examples; rules of users may have mapped it all the same."""
    return x if d is None else index_in_dim(x, 0, d, keepdims=False)


def _of_basis(
    linear: Any, tree: Any, given: list[ShapedArray], found: list[ShapedArray], axis: int, chunk_size: int | None
) -> list[Any]:
    """Apply `linear` to every element of the basis, which run along `axis` of its results, `chunk_size` at a time.

    The last chunk ends with the basis: it may repeat elements of the one before, so that all chunks are of one size.

    Args:
      tree, given: structure of the arguments of `linear`, and the types of their leaves.
      found: types of the leaves of the result.
    Returns: a leaf for each of `found`; float0 zeros for those that have no tangents.
    """
    total = sum(t.size for t in given)
    exact = [t.dtype != dtypes.float0 for t in found]
    step = min(chunk_size or total, total)

    def inexact_leaves(leaves: list[Any]) -> list[Any]:
        return [x for x, some in zip(pytree.leaves(linear(*pytree.unflatten(tree, leaves))), exact) if some]

    def chunk(start: Any) -> list[Any]:
        return vmap(inexact_leaves, out_axes=axis, axis_size=step)(basis(given, start, step))

    def with_chunk(*operands: Any) -> list[Any]:
        *results, start = operands
        return [dynamic_update_slice_in_dim(x, part, start, axis) for x, part in zip(results, chunk(start))]

    if step == total:
        joined = iter(chunk(0))
    else:
        starts = np.minimum(np.arange(0, total, step), total - step).astype(np.int32)
        empty = [_empty(t, total, axis) for t, some in zip(found, exact) if some]
        program, consts = trace_to_jaxpr(with_chunk, [*map(aval_of, empty), ShapedArray((), starts.dtype)])
        joined = iter(scan(program, consts, empty, [starts], length=len(starts)))
    return [next(joined) if some else _nothing(t, total, axis) for t, some in zip(found, exact)]


def _empty(t: ShapedArray, total: int, axis: int) -> Any:
    return instantiate(Zero(t.update(shape=(*t.shape, total) if axis else (total, *t.shape))))


def apply_to_batch(linear: Callable[..., Any], tangents: Sequence[Any]) -> Any:
    """Apply a linear function to arrays that have an axis more at the end, along which are tangents; so do results."""
    return vmap(linear, in_axes=-1, out_axes=-1)(*tangents)


def _nothing(t: ShapedArray, total: int, axis: int) -> Any:
    return np.zeros((*t.shape, total) if axis else (total, *t.shape), dtypes.float0)


def _blocks_of_columns(columns: list[Any], outs: list[ShapedArray], ins: list[ShapedArray]) -> list[list[Any]]:
    """Cut columns, given for each leaf of the result, by leaves of the arguments."""
    return [_cut(x, -1, [(y.shape, t.shape) for t in ins]) for x, y in zip(columns, outs)]


def _blocks_of_rows(rows: list[Any], outs: list[ShapedArray], ins: list[ShapedArray]) -> list[list[Any]]:
    """Cut rows, given for each leaf of the arguments, by leaves of the result."""
    cut = [_cut(x, 0, [(y.shape, t.shape) for y in outs]) for x, t in zip(rows, ins)]
    return [[each[j] for each in cut] for j in range(len(outs))]


def _cut(x: Any, axis: int, shapes: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> list[Any]:
    """Cut x along `axis` into blocks [*shape, *shape]; the axis runs over one of the shapes of each block."""
    sizes = tuple(int(np.prod(pair[axis], dtype=np.int64)) for pair in shapes)
    whole = [(*y, *t) for y, t in shapes]
    if aval_of(x).dtype == dtypes.float0:
        return [np.zeros(shape, dtypes.float0) for shape in whole]
    parts = split(x, sizes, axis % aval_of(x).ndim) if len(sizes) > 1 else (x,)
    return [reshape(part, shape) for part, shape in zip(parts, whole)]


def assemble_blocks(blocks: list[list[Any]], values: Any, chosen: Any, argnums: Any, aux: list[Any]) -> Any:
    """Assemble the pytree of blocks: by leaf of the result, then by leaf of the arguments."""
    inner = pytree.structure(chosen if isinstance(argnums, Sequence) else chosen[0])
    found = pytree.unflatten(pytree.structure(values), [pytree.unflatten(inner, row) for row in blocks])
    return (found, *aux) if aux else found


def _types(tree: Any) -> list[ShapedArray]:
    """Return the types of the tangents of leaves."""
    return [aval_of(x).tangent() for x in pytree.leaves(tree)]


# ---- what users give -----------------------------------------------------------------------------------------


def differentiated_arguments(
    who: str, fun: Any, argnums: Any, args: Any, kwargs: Any, holomorphic: bool, allow_int: bool | None, of: Any
) -> tuple[tuple[Any, ...], Any]:
    """Return the chosen arguments, and `fun` as a function of these; messages name `of`."""
    positions = canonical_argnums(who, argnums, args, of)
    for i in positions:
        check_inputs(who, args[i], i, of, holomorphic, allow_int)

    @functools.wraps(fun, shown_attributes(fun))
    def rest(*new: Any) -> Any:
        return with_arguments(fun, args, kwargs, positions, *new)

    return tuple(args[i] for i in positions), rest


def _without_aux(fun: Any, has_aux: bool) -> Callable[..., Any]:
    return (lambda *args: fun(*args)[0]) if has_aux else fun


def check_kind(who: str, what: str, name: str, tree: Any, fun: Any, holomorphic: bool | None) -> None:
    """Check leaves. Raises: TypeError if one is not complex and `holomorphic`, or not floating point and not.

    holomorphic=None: as False, and not offered.
    """
    for path, leaf in pytree.leaves_with_path(tree):
        where = f"{what} {name}{pytree.keystr(path)}".rstrip() + f" of {core.describe_function(fun)}"
        aval = aval_of(leaf)
        if holomorphic and not dtypes.is_complex(aval.dtype):
            raise TypeError(f"{who}: with holomorphic=True the {where} must be complex, but is {aval}.")
        if not holomorphic and dtypes.is_complex(aval.dtype):
            raise TypeError(
                f"{who}: the {where} is {aval}, but must be real.\n  "
                + (
                    "Give real and imaginary parts, as x.real and x.imag, or use tl.jvp or tl.vjp."
                    if holomorphic is None
                    else "Pass holomorphic=True if the function is, or use tl.jvp or tl.vjp."
                )
            )
        if not dtypes.is_inexact(aval.dtype):
            raise TypeError(f"{who}: the {where} is {aval}, and {no_derivative(aval)}")
