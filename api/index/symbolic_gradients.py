"""Gradients as formulas: derived from the types of arguments, printed, simplified by symmetries, and run.

Search terms: symbolic differentiation, Wirtinger derivative, variational derivative. A function is traced and
differentiated as always; what its equations compute is composed to sums of products of the named arguments
(interpreters/formulas/raise_terms.py). Source: Li & Damle 2024.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import update_wrapper
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tapeless.arguments.argument_checks import check_callable
from tapeless.arguments.names import leaf_names
from tapeless.compile.jit import program_of
from tapeless.compile.stages import ShapeDtypeStruct
from tapeless.differentiate.autodiff import jvp, vjp
from tapeless.differentiate.tangents import check_convention
from tapeless.index.constant_names import constant_names
from tapeless.index.formulas import Formulas, Input, ValueName, staying_axes
from tapeless.index.spaces import Space
from tapeless.index.symbolic_sizes import for_all_sizes
from tapeless.interpreters.formulas.let_form import conjugate_sum
from tapeless.interpreters.formulas.raise_terms import raise_program, with_squared_moduli
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.indices.hints import Hint, noting
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.numpy import conj, real
from tapeless.tracer.numpy import sum as sum_of
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.terms.affine import Affine, symbol
from tapeless.tracer.terms.term import term
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike

ONE = (term((), (), (), (), 1),)


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    convention: str = "hermitian",
    value: bool = False,
    lets: bool = False,
) -> Callable[..., Formulas]:
    """Make a function of arguments, or their types, that derives the gradient of `fun` as a formula.

    Args:
      fun: arrays, or trees of them -> a real scalar, or a complex one, of which the real part is meant.
      argnums: the argument, or the arguments, to differentiate with respect to.
      convention: "hermitian" is 2 ∂f/∂conj(z), the direction of ascent; "bilinear" its conjugate, which `tl.grad` has.
      value: derive the value, too: a pair of value and gradient.
      lets: give each step of reverse mode a name, so that nothing is computed twice, instead of composing them.
    Returns: a function of the arguments of `fun`, each a tree of arrays, `ShapeDtypeStruct`s or `Space`s, giving
      `Formulas`.
    Raises: TypeError if `fun` is no function, ValueError for another convention; when called, TypeError if an argument
      is none of these, if the result is no scalar, or if an argument to differentiate with respect to is integer.

    >>> A, x = Space("A", (3, 3), symmetries="symmetric"), Space("x", (3,))
    >>> g = grad(lambda A, x: x @ A @ x, argnums=1)(A, x)
    >>> print(g)
    Σ[j] A[j,a] * x[j] + Σ[j] A[a,j] * x[j]
    >>> print(g.simplify())
    2 * Σ[j] A[a,j] * x[j]
      if A[i,j] = A[j,i]
    """
    check_callable("index.grad", fun)
    check_convention("index.grad", convention)

    def derive(*args: Any) -> Formulas:
        program = _traced("index.grad", fun, args)
        _check_scalar(fun, program)
        return _derived(program, argnums, convention, program.jaxpr.out_avals if value else (), lets)

    return for_all_sizes(derive)


def pullback(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    convention: str = "hermitian",
    value: bool = False,
    lets: bool = False,
) -> Callable[..., Formulas]:
    """Make a function of arguments and a cotangent that derives the pullback through `fun` as a formula.

    Args:
      fun: arrays, or trees of them -> an array, or a tree.
      argnums, convention, value, lets: as of `grad`.
    Returns: a function of the arguments of `fun` and then the cotangent, each a tree of arrays, types or `Space`s.
    Raises: what `grad` raises; TypeError if the cotangent is not like the result.
    """
    check_callable("index.pullback", fun)
    check_convention("index.pullback", convention)

    def paired(*args: Any) -> Any:
        result = fun(*args[:-1])
        ys, tree = pytree.flatten(result)
        ks = pytree.flatten_up_to(tree, args[-1], "index.pullback", ("the result", "the cotangent"))
        for k, y in zip(ks, ys, strict=True):
            if aval_of(k).shape != aval_of(y).shape:
                raise TypeError(f"index.pullback: the cotangent is {aval_of(k)}, the result {aval_of(y)}.")
        parts = [real(sum_of((k if convention == "bilinear" else conj(k)) * y)) for k, y in zip(ks, ys)]
        return sum(parts[1:], parts[0]), result

    def derive(*args: Any) -> Formulas:
        if not args:
            raise TypeError("index.pullback: expected the arguments of the function and a cotangent.")
        names = [*leaf_names(fun, args[:-1], {}), *_names("k", args[-1])]
        leaves, tree = pytree.flatten(args, _is_leaf)
        named = [x if isinstance(x, Space) else _Named(name, x) for name, x in zip(names, leaves, strict=True)]
        program = _traced("index.pullback", paired, pytree.unflatten(tree, named))
        return _derived(program, argnums, convention, program.jaxpr.out_avals[1:] if value else (), lets)

    return for_all_sizes(derive)


class _Named(NamedTuple):
    """An argument, or a type, by the name of another function's parameter."""

    name: str
    given: Any


def _is_leaf(x: Any) -> bool:
    return isinstance(x, (Space, _Named, ShapeDtypeStruct))


def _names(name: str, tree: Any) -> list[str]:
    return [f"{name}{pytree.keystr(path)}" for path, _ in pytree.leaves_with_path(tree, _is_leaf)]


# ---- tangents with a free index ------------------------------------------------------------------------------


class Free(NamedTuple):
    """An index that stays free."""

    name: str


class _Axis:
    """The index along an axis of an argument, to be compared with what it is."""

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def __eq__(self, other: object) -> Any:
        return _OneHot({self.axis: other})

    __hash__ = None  # type: ignore[assignment]


def _refused(operator: str) -> Callable[..., NoReturn]:
    def refuse(*operands: Any) -> NoReturn:
        raise TypeError(
            f"index.push: along applies `{operator}` to an index, but says where a tangent is 1 by == alone, joined by "
            "&: (i == index.free('k')) & (j == 0). For other directions, push several, and add them."
        )

    return refuse


for _name, _operator in (
    ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("add", "+"), ("radd", "+"), ("sub", "-"),
    ("rsub", "-"), ("mul", "*"), ("rmul", "*"), ("floordiv", "//"), ("mod", "%"), ("neg", "-"), ("bool", "if"),
):  # fmt: skip
    setattr(_Axis, f"__{_name}__", _refused(_operator))


class _OneHot:
    """Place where a tangent is 1: an index for each of some axes."""

    def __init__(self, at: Mapping[int, Any]) -> None:
        self.at = at

    def __and__(self, other: "_OneHot") -> "_OneHot":
        if self.at.keys() & other.at.keys():
            raise ValueError("index.push: along compares an index twice.")
        return _OneHot({**self.at, **other.at})


def free(name: str) -> Free:
    """Name an index that stays free: `push(f, x, along=lambda i: i == free("k"))`."""
    if not name.isidentifier():
        raise TypeError(f"index.free: the name {name!r} is not a Python identifier.")
    return Free(name)


def push(fun: Callable[..., Any], x: Any, along: Callable[..., Any]) -> Formulas:
    """Derive, as a formula, the derivative of `fun` at `x` along a tangent that is 1 where `along` says, else 0.

    Args:
      fun: an array -> an array.
      x: array, type or `Space`.
      along: indices, one for each axis of x -> comparisons with numbers or free indices, joined by `&`.
    Returns: the derivative, a function of x and of the values of the free indices.
    Raises: TypeError if `fun` or `along` is no function, `along` compares nothing, or x is integer.

    >>> g = Space("g", (3,))
    >>> print(push(lambda x: x * x, Space("x", (4,)), along=lambda i: i == free("k")))
    2 * [a = k] * x[k]
    """
    check_callable("index.push", fun)
    check_callable("index.push", along)
    return for_all_sizes(lambda x: _pushed_along(fun, x, along))(x)


def _pushed_along(fun: Callable[..., Any], x: Any, along: Callable[..., Any]) -> Formulas:
    program = _traced("index.push", fun, (x,))
    _check_differentiable(program, (0,))
    aval = program.operands[-1].aval
    where = along(*map(_Axis, range(aval.ndim)))
    if not isinstance(where, _OneHot):
        raise TypeError(f"index.push: along gives {where!r}, no comparison of indices: i == index.free('k').")
    return _pushed(program, where.at)


def _pushed(program: "_Program", where: Mapping[int, Any]) -> Formulas:
    aval, n = program.operands[-1].aval, len(program.operands)
    sizes = dict[str, int]()
    for d, i in where.items():
        if isinstance(i, Free):
            sizes[i.name] = min(sizes.get(i.name, aval.shape[d]), aval.shape[d])
    taken = sizes.keys() & {o.name for o in program.operands}
    if taken:
        raise ValueError(f"index.push: {', '.join(sorted(taken))} is the name of an array, too.")
    numbers = {name: n + k for k, name in enumerate(sizes)}
    out, box = list[Affine](), list[int]()
    for d, size in enumerate(aval.shape):
        at = where.get(d)
        if isinstance(at, Free):
            out.append(symbol(numbers[at.name], 0, sizes[at.name] - 1))
        elif at is None:
            out.append(Affine(0, ((len(box), 1),)))
            box.append(size)
        else:
            out.append(Affine(_position(at, size)))

    def pushed(t: Any, *inputs: Any) -> Sequence[Any]:
        *others, x = inputs
        return [jvp(lambda x: program(*others, x), (x,), (t,))[1]]

    jaxpr = trace_closed(pushed, [aval, *[o.aval for o in program.operands]], what="index.push")
    scalar = ShapedArray((), np.dtype(np.int32))
    given = {0: (term(out, box, (), (), 1),)}
    form = raise_program(jaxpr, given, [scalar] * len(sizes), stays=staying_axes(program.operands))
    operands = (*program.operands, *[Input(name, scalar, size=size) for name, size in sizes.items()])
    return replace(Formulas.of(form, operands, (None,), jaxpr.out_avals), assumptions=program.assumptions)


def _position(at: Any, size: int) -> int:
    """Read a number that an index is compared with.

    Raises: TypeError for none, IndexError for one outside of its axis.
    """
    if not isinstance(at, (int, np.integer)) or isinstance(at, bool):
        raise TypeError(f"index.push: along compares an index with {at!r}, neither a number nor a free index.")
    at = int(at)
    if not 0 <= at < size:
        raise IndexError(f"index.push: {at} is outside of an axis of {size}.")
    return at


# ---- programs ------------------------------------------------------------------------------------------------


class _Program(NamedTuple):
    """A traced function: operands are the constants that it met, then the leaves of its arguments."""

    jaxpr: Jaxpr
    operands: tuple[Input, ...]
    arguments: pytree.PyTreeDef
    results: pytree.PyTreeDef
    assumptions: tuple[str, ...]  # of formulas that it calls

    def __call__(self, *values: Any) -> Any:
        return self.all(*values)[0]

    @property
    def value(self) -> pytree.PyTreeDef:
        """Return the structure of the value: the result, or what stands behind the scalar that is differentiated."""
        return self.results if pytree.treedef_is_leaf(self.results) else pytree.treedef_children(self.results)[1]

    def all(self, *values: Any) -> Any:
        """Compute all results."""
        return eval_jaxpr(self.jaxpr, values)


def _traced(who: str, fun: Callable[..., Any], args: Sequence[Any]) -> _Program:
    """Trace a function, and name its constants and arguments."""
    leaves, tree = pytree.flatten(tuple(args), _is_leaf)
    spaces = [x.given if isinstance(x, _Named) else x for x in leaves]
    avals = [_type_of(who, x) for x in spaces]
    own = [name for k, x in enumerate(args) for name in _names(_heads(fun, args)[k], x)]
    names = [_as_name(x.name if isinstance(x, (Space, _Named)) else name) for x, name in zip(leaves, own, strict=True)]
    names = [name if name.isidentifier() else f"x{k}" for k, name in enumerate(names)]
    if len(set(names)) < len(names):
        raise ValueError(f"{who}: two arguments have the same name: {', '.join(names)}.")
    results, arrays = list[pytree.PyTreeDef](), list[Any]()

    def noted(*args: Any) -> Any:
        arrays[:] = pytree.leaves(args)
        result = fun(*args)
        results.append(pytree.structure(result))
        return result

    structs = pytree.unflatten(tree, [ShapeDtypeStruct(a.shape, a.dtype) for a in avals])
    with noting() as notes:
        closed = program_of(who, update_wrapper(noted, fun), list(structs), {})
    given = [_noted(_input(n, a, x), array, notes.hints) for n, a, x, array in zip(names, avals, spaces, arrays)]
    held = closed.consts
    constants = [
        _noted(Input(name, aval_of(x), value=x), x, notes.hints)
        for name, x in zip(constant_names(fun, held, names), held)
    ]
    assumptions = tuple(dict.fromkeys(notes.assumptions))
    return _Program(with_squared_moduli(closed.jaxpr), (*constants, *given), tree, results[-1], assumptions)


def _heads(fun: Any, args: Sequence[Any]) -> list[str]:
    """Name arguments as the parameters of a function."""
    return leaf_names(fun, tuple([0] * len(args)), {})


def _as_name(path: str) -> str:
    """Write a path, `w['bias']`, as a name, `w_bias`."""
    return re.sub(r"\W+", "_", path).strip("_")


def _noted(o: Input, array: Any, hints: Sequence[Hint]) -> Input:
    """Add to an input what indices that read its array say of their axes."""
    own = [h for h in hints if h.array is array]
    stays = tuple(dict.fromkeys([*o.stays, *[h.axis for h in own if h.stays]]))
    return o._replace(hints=tuple([(h.axis, h.name) for h in own if h.name]), stays=stays)


def _input(name: str, aval: ShapedArray, x: Any) -> Input:
    if not isinstance(x, Space):
        return Input(name, aval)
    return Input(name, aval, x.symmetries, periods=x.periods, stays=x.stays)


def _type_of(who: str, x: Any) -> ShapedArray:
    if isinstance(x, Space):
        return x.aval
    if isinstance(x, ShapeDtypeStruct):
        return ShapedArray(x.shape, x.dtype)
    if not is_arraylike(x):
        raise TypeError(f"{who}: {x!r} of type {type(x).__name__} is no array, no type of one, and no Space.")
    return aval_of(x).strong()


def _check_scalar(fun: Any, program: _Program) -> None:
    outs = program.jaxpr.out_avals
    if len(outs) != 1 or outs[0].shape or not dtypes.is_inexact(outs[0].dtype):
        said = ", ".join(map(str, outs))
        raise TypeError(
            f"index.grad: the result of {getattr(fun, '__name__', fun)} is {said}, not a scalar of numbers."
        )


def _check_differentiable(program: _Program, at: Sequence[int]) -> None:
    arguments = [o for o in program.operands if o.value is None]
    for k in at:
        if not dtypes.is_inexact(arguments[k].aval.dtype):
            raise TypeError(f"{arguments[k].name}, {arguments[k].aval}, has no derivative: convert it to float.")


def _derived(
    program: _Program,
    argnums: int | Sequence[int],
    convention: str,
    values: Sequence[ShapedArray],
    lets: bool,
) -> Formulas:
    """Derive the gradient of the first result of a program, and the last results, of these types, as values."""
    arguments = pytree.treedef_children(program.arguments)
    chosen = _chosen(argnums, len(arguments))
    starts = np.cumsum([0, *[t.num_leaves for t in arguments]])
    leaves = [leaf for k in chosen for leaf in range(starts[k], starts[k + 1])]
    _check_differentiable(program, leaves)
    n = sum(o.value is not None for o in program.operands)
    places = [n + k for k in leaves]
    jaxpr = _gradient_program(program, places, len(values))
    form = raise_program(jaxpr, {0: ONE}, lets=lets, stays=staying_axes(program.operands))
    if convention == "hermitian":
        is_gradient = [k >= len(values) and dtypes.is_complex(a.dtype) for k, a in enumerate(jaxpr.out_avals)]
        results = [conjugate_sum(t, form.real) if yes else t for t, yes in zip(form.results, is_gradient)]
        form = form._replace(results=tuple(results))
    of_values = [ValueName("value" if len(values) == 1 else f"value{k}") for k in range(len(values))]
    names = [*of_values, *[program.operands[k].name for k in places]]
    own = [arguments[k] for k in chosen]
    tree = own[0] if isinstance(argnums, int) else pytree.treedef_tuple(own)
    if values:
        tree = pytree.treedef_tuple([program.value, tree])
    found = Formulas.of(form, program.operands, names, jaxpr.out_avals, program.arguments, tree)
    return replace(found, assumptions=program.assumptions)


def _chosen(argnums: int | Sequence[int], n: int) -> list[int]:
    """List the numbers of the arguments, of n, that a gradient is with respect to. Raises: ValueError for one twice."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    found = [range(n)[k] for k in numbers]
    if len(set(found)) < len(found):
        raise ValueError(f"index.grad: argnums={argnums} has an argument twice.")
    return found


def _gradient_program(program: _Program, places: Sequence[int], n_values: int) -> Jaxpr:
    """Trace cotangent, operands -> the last `n_values` results of a program, gradients by the operands at `places`."""

    def derived(ct: Any, *inputs: Any) -> Sequence[Any]:
        def scalar(*given: Any) -> Any:
            new = dict(zip(places, given))
            found = program(*[new.get(k, x) for k, x in enumerate(inputs)])
            return real(found) if dtypes.is_complex(aval_of(found).dtype) else found

        found = program.all(*inputs)
        return [*found[len(found) - n_values :], *vjp(scalar, *[inputs[k] for k in places])[1](ct)]

    one = ShapedArray((), dtypes.real_part_dtype(program.jaxpr.out_avals[0].dtype))
    return trace_closed(derived, [one, *[o.aval for o in program.operands]], what="index.grad")
