"""Gradients as formulas: derived from the types of arguments, printed, simplified by symmetries, and run.

Search terms: symbolic differentiation, Wirtinger derivative, variational derivative. A function is traced and
differentiated as always; what its equations compute is composed to sums of products of the named arguments
(interpreters/raise_terms.py). Source: Li & Damle 2024. Left out: functions that are not known yet, periodic and
symmetric ranges of indices.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from tapeless.arguments.checks import check_callable
from tapeless.arguments.names import leaf_names
from tapeless.compile.jit import program_of
from tapeless.compile.stages import ShapeDtypeStruct
from tapeless.differentiate.autodiff import jvp, vjp
from tapeless.formulas import Formulas, Input
from tapeless.interpreters.let_form import conjugated
from tapeless.interpreters.raise_terms import raised, with_squared_moduli
from tapeless.spaces import Space
from tapeless.symbolic_sizes import for_all_sizes
from tapeless.tracer import dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.core import Tracer
from tapeless.tracer.jaxpr import eval_jaxpr
from tapeless.tracer.numpy import conj, real
from tapeless.tracer.numpy import sum as sum_of
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.terms.affine import Affine, symbol
from tapeless.tracer.terms.term import term
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike

CONVENTIONS = ("hermitian", "bilinear")
ONE = (term((), (), (), (), 1),)


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, *, convention: str = "hermitian"
) -> Callable[..., Formulas]:
    """Make a function of arguments, or their types, that derives the gradient of `fun` as a formula.

    Args:
      fun: arrays -> a real scalar, or a complex one, of which the real part is meant.
      argnums: the argument, or the arguments, to differentiate with respect to.
      convention: "hermitian" is 2 ∂f/∂conj(z), the direction of ascent; "bilinear" its conjugate, which `tl.grad` has.
    Returns: a function of the arguments of `fun`, each an array, a `ShapeDtypeStruct` or a `Space`, giving `Formulas`.
    Raises: TypeError if `fun` is no function, ValueError for another convention; when called, TypeError if an argument
      is none of these, if the result is no scalar, or if an argument to differentiate with respect to is integer.

    >>> A, x = Space("A", (3, 3), symmetries="symmetric"), Space("x", (3,))
    >>> g = grad(lambda A, x: x @ A @ x, argnums=1)(A, x)
    >>> print(g)
    Σ[j] A[j,a] * x[j] + Σ[j] A[a,j] * x[j]
    >>> print(g.simplify())
    2 * Σ[j] A[a,j] * x[j]
    """
    check_callable("index.grad", fun)
    if convention not in CONVENTIONS:
        raise ValueError(f"index.grad: convention={convention!r} is none of {CONVENTIONS}.")

    def derive(*args: Any) -> Formulas:
        program = _traced("index.grad", fun, args)
        _check_scalar(fun, program)
        at = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        at = tuple([range(len(args))[k] for k in at])
        if len(set(at)) < len(at):
            raise ValueError(f"index.grad: argnums={argnums} has an argument twice.")
        _check_differentiable(program, at)
        return _derived(program, at, convention, isinstance(argnums, int))

    return for_all_sizes(derive)


def pullback(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, *, convention: str = "hermitian"
) -> Callable[..., Formulas]:
    """Make a function of arguments and a cotangent that derives, as a formula, what `fun` pulls the cotangent back to.

    Args:
      fun: arrays -> an array.
      argnums, convention: as of `grad`.
    Returns: a function of the arguments of `fun` and then the cotangent, each an array, a type or a `Space`.
    Raises: what `grad` raises.
    """
    check_callable("index.pullback", fun)

    def paired(*args: Any) -> Any:
        k, y = args[-1], fun(*args[:-1])
        if aval_of(k).shape != aval_of(y).shape:
            raise TypeError(f"index.pullback: the cotangent is {aval_of(k)}, the result {aval_of(y)}.")
        return real(sum_of((k if convention == "bilinear" else conj(k)) * y))

    def derive(*args: Any) -> Formulas:
        if not args:
            raise TypeError("index.pullback: expected the arguments of the function and a cotangent.")
        names = [*leaf_names(fun, args[:-1], {}), "k"]
        named = [x if isinstance(x, Space) else _Named(name, x) for name, x in zip(names, args)]
        return grad(paired, argnums, convention=convention)(*named)

    return for_all_sizes(derive)


class _Named(NamedTuple):
    """An argument, or a type, by the name of another function's parameter."""

    name: str
    given: Any


# ---- tangents with a free index ------------------------------------------------------------------------------


class Free(NamedTuple):
    """An index that stays free."""

    name: str


class _Axis(NamedTuple):
    """The index along an axis of an argument, to be compared with what it is."""

    axis: int

    def __eq__(self, other: object) -> Any:
        return _OneHot({self.axis: other})

    __hash__ = None  # type: ignore[assignment]


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
        raise TypeError(f"index.free: the name {name!r} is no name of Python.")
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

    jaxpr, _ = trace_to_jaxpr(pushed, [aval, *[o.aval for o in program.operands]], what="index.push")
    scalar = ShapedArray((), np.dtype(np.int32))
    form = raised(jaxpr, {0: (term(out, box, (), (), 1),)}, [scalar] * len(sizes))
    operands = (*program.operands, *[Input(name, scalar, size=size) for name, size in sizes.items()])
    return Formulas.of(form, operands, (None,), jaxpr.out_avals, True)


def _position(at: Any, size: int) -> int:
    """Read a number that an index is compared with.

    Raises: TypeError for none, IndexError for one outside of its axis.
    """
    if not isinstance(at, int):
        raise TypeError(f"index.push: along compares an index with {at!r}, neither a number nor a free index.")
    if not 0 <= at < size:
        raise IndexError(f"index.push: {at} is outside of an axis of {size}.")
    return at


# ---- programs ------------------------------------------------------------------------------------------------


class _Program(NamedTuple):
    """A traced function: operands are the constants that it met, then its arguments."""

    jaxpr: Any
    operands: tuple[Input, ...]

    def __call__(self, *values: Any) -> Any:
        return eval_jaxpr(self.jaxpr, values)[0]


def _traced(who: str, fun: Callable[..., Any], args: Sequence[Any]) -> _Program:
    """Trace a function, and name its constants and arguments."""
    spaces = [x.given if isinstance(x, _Named) else x for x in args]
    avals = [_type_of(who, x) for x in spaces]
    names = [x.name if isinstance(x, (Space, _Named)) else name for x, name in zip(args, leaf_names(fun, args, {}))]
    names = [name if name.isidentifier() else f"x{k}" for k, name in enumerate(names)]
    if len(set(names)) < len(names):
        raise ValueError(f"{who}: two arguments have the same name: {', '.join(names)}.")
    closed = program_of(who, fun, [ShapeDtypeStruct(a.shape, a.dtype) for a in avals], {})
    if len(closed.out_avals) != 1:
        raise TypeError(f"{who}: the function returns {len(closed.out_avals)} arrays, not one.")
    given = [Input(n, a, x.symmetries if isinstance(x, Space) else ()) for n, a, x in zip(names, avals, spaces)]
    constants = [
        Input(name, aval_of(x), value=x) for name, x in zip(_constant_names(fun, closed.consts, names), closed.consts)
    ]
    return _Program(with_squared_moduli(closed.jaxpr), (*constants, *given))


def _type_of(who: str, x: Any) -> ShapedArray:
    if isinstance(x, Space):
        return x.aval
    if isinstance(x, ShapeDtypeStruct):
        return ShapedArray(x.shape, x.dtype)
    if not is_arraylike(x):
        raise TypeError(f"{who}: {x!r} of type {type(x).__name__} is no array, no type of one, and no Space.")
    return aval_of(x).strong()


def _check_scalar(fun: Any, program: _Program) -> None:
    (out,) = program.jaxpr.out_avals
    if out.shape or not dtypes.is_inexact(out.dtype):
        raise TypeError(f"index.grad: the result of {getattr(fun, '__name__', fun)} is {out}, not a scalar of numbers.")


def _check_differentiable(program: _Program, at: Sequence[int]) -> None:
    arguments = [o for o in program.operands if o.value is None]
    for k in at:
        if not dtypes.is_inexact(arguments[k].aval.dtype):
            raise TypeError(f"{arguments[k].name}, {arguments[k].aval}, has no derivative: convert it to float.")


def _derived(program: _Program, at: Sequence[int], convention: str, is_single: bool) -> Formulas:
    n = sum(o.value is not None for o in program.operands)
    places = [n + k for k in at]
    (out,) = program.jaxpr.out_avals

    def gradients(ct: Any, *inputs: Any) -> Sequence[Any]:
        def value(*given: Any) -> Any:
            new = dict(zip(places, given))
            found = program(*[new.get(k, x) for k, x in enumerate(inputs)])
            return real(found) if dtypes.is_complex(out.dtype) else found

        return vjp(value, *[inputs[k] for k in places])[1](ct)

    one = ShapedArray((), dtypes.real_part_dtype(out.dtype))
    jaxpr, _ = trace_to_jaxpr(gradients, [one, *[o.aval for o in program.operands]], what="index.grad")
    form = raised(jaxpr, {0: ONE})
    if convention == "hermitian":
        results = [
            conjugated(terms, form.real) if dtypes.is_complex(aval.dtype) else terms
            for terms, aval in zip(form.results, jaxpr.out_avals)
        ]
        form = form._replace(results=tuple(results))
    names = tuple([program.operands[k].name for k in places])
    return Formulas.of(form, program.operands, names, jaxpr.out_avals, is_single)


# ---- names of constants --------------------------------------------------------------------------------------


def _constant_names(fun: Any, constants: Sequence[Any], taken: Sequence[str]) -> Iterator[str]:
    """Name constants as the variables that hold them, of the function's closure or module; else A, B, ..."""
    known = dict(_variables(fun))
    letters = (f"{letter}{n or ''}" for n in range(len(constants) + 1) for letter in "ABCDEFGHKLMNPQRSTUVWXYZ")
    used = set(taken)
    for x in constants:
        own = next((name for name, value in known.items() if name not in used and _is_same(x, value)), None)
        name = own or next(letter for letter in letters if letter not in used and letter not in known)
        used.add(name)
        yield name


def _variables(fun: Any) -> Iterator[tuple[str, Any]]:
    code = getattr(inspect.unwrap(fun), "__code__", None)
    if code is None:
        return
    function = inspect.unwrap(fun)
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a variable without a value yet
            continue
    for name in _globals_read(code):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _globals_read(code: CodeType) -> Iterator[str]:
    """List names that a function, or one inside of it, may read from its module."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals_read(inner)


def _is_same(x: Any, value: Any) -> bool:
    if x is value:
        return True
    if isinstance(value, Tracer) or isinstance(x, Tracer) or not isinstance(value, (np.ndarray, Array)):
        return False
    aval = aval_of(value)
    if aval.shape != x.shape or dtypes.kind(aval.dtype) != dtypes.kind(x.dtype):
        return False
    return bool(np.array_equal(np.asarray(x), np.asarray(value).astype(x.dtype)))
