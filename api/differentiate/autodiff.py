"""Derivatives of functions of pytrees: grad, vjp, jvp, linearize and their kin, with JAX's signatures."""

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, ParamSpec, TypeVar, overload

from tapeless.arguments.argument_checks import (
    FUNCTION_AND_ARGUMENTS,
    check_arguments,
    check_arrays,
    check_callable,
    no_derivative,
    structure,
)
from tapeless.arguments.names import leaf_names, name_derived
from tapeless.differentiate.argnums import canonical_argnums, check_argnums, check_inputs, with_arguments
from tapeless.differentiate.linear_maps import LinearMap, PullBack, PullBackForm, TangentSpace, positions
from tapeless.differentiate.references import OfArrays, ReferencePullBack, has_references
from tapeless.differentiate.tangents import (
    check_convention,
    in_convention,
    instantiate_tangents,
    own_array,
    pull_back_in_convention,
    tangents_of,
)
from tapeless.interpreters import jvp as forward
from tapeless.interpreters import linearize as linearization
from tapeless.interpreters.analysis.linearity import check_linear
from tapeless.interpreters.partial_eval import unzip_jaxpr
from tapeless.tracer import dtypes, leaks, pytree
from tapeless.tracer.core import function_name
from tapeless.tracer.errors import LinearityError
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.primitives.operands import constant, known_elements
from tapeless.tracer.settings.config import config
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike

if TYPE_CHECKING:
    from tapeless.differentiate import budgets
else:
    budgets = LateModule("tapeless.differentiate.budgets")
config.watch("memory_budget", lambda limit: budgets.read_setting(limit))

P = ParamSpec("P")
A = TypeVar("A", bound=Any)  # the argument that is differentiated; bound, so that those of lambdas are taken as Any
R = TypeVar("R")
Aux = TypeVar("Aux")


@overload
def grad(
    fun: Callable[Concatenate[A, P], Any],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    memory_budget: int | float | str | None = None,
) -> Callable[Concatenate[A, P], A]: ...
@overload
def grad(
    fun: Callable[Concatenate[A, P], tuple[Any, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    memory_budget: int | float | str | None = None,
) -> Callable[Concatenate[A, P], tuple[A, Aux]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: Sequence[int],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    memory_budget: int | float | str | None = None,
) -> Callable[P, tuple[Any, ...]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    convention: str = "bilinear",
    memory_budget: int | float | str | None = None,
) -> Callable[P, Any]: ...
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    convention: str = "bilinear",
    memory_budget: int | float | str | None = None,
) -> Callable[..., Any]:
    """Make a function of the same arguments that computes the gradient of a scalar function.

    Args:
      fun: maps pytrees of arrays to a scalar, or to (scalar, aux) if `has_aux`.
      argnums: which positional arguments to differentiate; several give a tuple.
      holomorphic: promise that `fun` is, and its arguments are complex.
      allow_int: differentiate integers too, giving float0 zeros.
      convention: of complex arguments: "bilinear" is ∂f/∂x - i ∂f/∂y, "hermitian" its conjugate.
      memory_budget: at most so many bytes are live at once, as if `fun` were a checkpoint with the policy
        `tl.checkpoint_policies.budget(memory_budget)`: bytes, a text such as "2GB", or a part from 0.0 to 1.0.
        None: as `tl.config.memory_budget` says, which `jit(memory_budget=...)` sets.
    Returns: gradients shaped like the arguments; with `has_aux` also aux.
    Raises: TypeError if `fun` is no function; when called, TypeError if the result is not a scalar or an argument not
      differentiable, ValueError if there is no argument at `argnums` or the budget cannot be kept.
    Source: Radul et al. 2023.

    >>> grad(lambda x: x**2)(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    value_and_gradient = _value_and_grad(
        "grad", fun, argnums, has_aux, holomorphic, allow_int, convention, memory_budget
    )

    @name_derived("gradient", fun, same_arguments=True)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, pulled = value_and_gradient(*args, **kwargs)
        return (pulled, value[1]) if has_aux else pulled

    return gradient


@overload
def value_and_grad(
    fun: Callable[Concatenate[A, P], R],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    memory_budget: int | float | str | None = None,
) -> Callable[Concatenate[A, P], tuple[R, A]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[A, P], tuple[R, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    memory_budget: int | float | str | None = None,
) -> Callable[Concatenate[A, P], tuple[tuple[R, Aux], A]]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: Sequence[int],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    memory_budget: int | float | str | None = None,
) -> Callable[P, tuple[R, tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    convention: str = "bilinear",
    memory_budget: int | float | str | None = None,
) -> Callable[P, tuple[R, Any]]: ...
def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    convention: str = "bilinear",
    memory_budget: int | float | str | None = None,
) -> Callable[..., Any]:
    """Make a function of the same arguments that computes the value and the gradient of a scalar function.

    Args: those of `grad`.
    Returns: a function that gives `(value, gradient)`, with `has_aux` `((value, aux), gradient)`.
    Raises: TypeError, ValueError as `grad`.

    >>> value_and_grad(lambda x: x**2)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    return _value_and_grad("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int, convention, memory_budget)


def _value_and_grad(
    who: str,
    fun: Any,
    argnums: Any,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    convention: str,
    memory_budget: int | float | str | None,
) -> Callable[..., Any]:
    check_callable(who, fun)
    check_convention(who, convention)
    check_argnums(who, argnums)
    budget = None if memory_budget is None else budgets.read_limit(memory_budget, who)

    @name_derived("value_and_gradient", fun, same_arguments=True)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        chosen = canonical_argnums(who, argnums, args, fun)
        for i in chosen:
            check_inputs(who, args[i], i, fun, holomorphic, allow_int)
        rest: Callable[..., Any] = functools.partial(with_arguments, fun, args, kwargs, chosen)
        if limit := budget or config.memory_budget:
            rest = budgets.within_budget(rest, fun, len(args), chosen, limit, has_aux)
        values, pull_back, aux = _vjp(who, rest, [args[i] for i in chosen], has_aux, fun)
        leaves, tree = pytree.flatten(values)
        check_scalar(who, leaves, tree, fun, holomorphic)
        one = constant(1, aval_of(leaves[0]))
        pulled = pull_back(pytree.unflatten(tree, [one]))
        result = in_convention(convention, pulled if isinstance(argnums, Sequence) else pulled[0])
        return ((values, aux) if has_aux else values), result

    return value_and_gradient


@overload
def vjp(fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False) -> tuple[R, PullBack]: ...
@overload
def vjp(fun: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True]) -> tuple[R, PullBack, Aux]: ...
@overload
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool) -> Any: ...
@overload
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, convention: str) -> Any: ...
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, convention: str = "bilinear") -> Any:
    """Compute the value of `fun`, and a function that maps cotangents of the result to cotangents of the arguments.

    Args:
      primals: pytrees of arrays.
      has_aux: `fun` returns (value, aux).
      convention: of complex numbers: "bilinear" pulls k back through v z as v k, "hermitian" as conj(v) k.
    Returns: (value, pull_back), with aux as third if `has_aux`; `pull_back(cotangent)` is a tuple, one per primal.
      The function `pull_back` is a pytree, of its residuals.
    Raises: TypeError if a primal is not an array; of `pull_back`, if the cotangent's structure or types differ.

    >>> y, pull_back = vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> pull_back(1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_convention("vjp", convention)
    value, pull_back, *aux = vjp_of("vjp", fun, primals, has_aux)
    return (value, pull_back_in_convention(convention, pull_back), *aux)


def vjp_of(who: str, fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool) -> Any:
    """Compute `vjp`, for which `who` is asked, in messages."""
    check_callable(who, fun, expected=FUNCTION_AND_ARGUMENTS)
    if has_references(primals):
        return _vjp_of_references(who, OfArrays(fun, primals, has_aux), has_aux)
    check_arguments(who, fun, function_name(fun), primals)
    values, pull_back, aux = _vjp(who, fun, primals, has_aux, fun)
    return (values, pull_back, aux) if has_aux else (values, pull_back)


def _vjp_of_references(who: str, f: OfArrays, has_aux: bool) -> Any:
    """Compute `vjp` of a function some of whose arguments are references."""
    check_arguments(who, f, f.__name__, f.primals)
    (values, after), pull_back, aux = f.lent(lambda: _vjp(who, f, f.primals, has_aux, f), who)
    f.put_back(after)
    pulling = ReferencePullBack(pull_back, f)
    return (values, pulling, aux) if has_aux else (values, pulling)


@overload
def jvp(
    fun: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, Aux]], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: Literal[True]
) -> tuple[R, R, Aux]: ...
@overload
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool) -> Any: ...
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """Compute the value of `fun` at `primals`, and its derivative in the direction `tangents`, in forward mode.

    Args:
      primals, tangents: sequences of pytrees of the same structure, shapes and dtypes; float0 for integers.
    Returns: (value, tangent), with aux as third if `has_aux`.
    Raises: TypeError if structures, shapes or dtypes differ; both are named.

    >>> jvp(lambda x: x**2, (3.0,), (1.0,))[1]
    Array(6., dtype=float32, weak_type=True)
    """
    check_callable("jvp", fun)
    _check_sequences(primals, tangents)
    if has_references(primals):
        return _jvp_of_references(OfArrays(fun, primals, has_aux), OfArrays(fun, tangents, has_aux), has_aux)
    check_arguments("jvp", fun, function_name(fun), primals)
    flat, tree = pytree.flatten(tuple(primals))
    flat_tangents, tangent_tree = pytree.flatten(tuple(tangents))
    if tree != tangent_tree:
        told = pytree.compare(tree, tangent_tree, ("primals", "tangents"))
        raise TypeError(f"jvp: primals and tangents differ in structure.{told}")
    who = lambda i: f"jvp: the tangent of {leaf_names(fun, tuple(primals), {})[i]}"  # noqa: E731
    given = tangents_of(list(map(aval_of, flat)), flat_tangents, who)
    f = FlatFunction("jvp", fun, tree, has_aux)
    values, pushed = leaks.check_leaks(lambda: forward.jvp(f, flat, given, fun))
    result = f.unflatten(values), f.unflatten(instantiate_tangents(pushed))
    return (*result, f.aux(values)) if has_aux else result


def _jvp_of_references(f: OfArrays, tangents: OfArrays, has_aux: bool) -> Any:
    """Compute `jvp` of a function some of whose arguments are references: so are their tangents."""
    if f.tree != tangents.tree or list(f.references) != list(tangents.references):
        raise TypeError("jvp: the tangent of a reference must be a reference, and that of anything else none.")
    found = f.lent(lambda: tangents.lent(lambda: jvp(f, f.primals, tangents.primals, has_aux), "jvp"), "jvp")
    (values, after), (pushed, pushed_after), *aux = found
    f.put_back(after)
    tangents.put_back(pushed_after)
    return (values, pushed, *aux)


@overload
def linearize(fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False) -> tuple[R, LinearMap]: ...
@overload
def linearize(fun: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True]) -> tuple[R, LinearMap, Aux]: ...
@overload
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool) -> Any: ...
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Compute the value of `fun` at `primals`, and its derivative as a linear map that may be applied many times.

    Returns: (value, push_forward), with aux as third if `has_aux`; `push_forward(*tangents)` gives the tangent. This is
      an operator, with `@`, `.T`, `.H`, `+`, `*`, `.matrix()` and `.cost`, and a pytree, of its residuals.
    Raises: TypeError of `push_forward`, if tangents differ from the primals in structure or type.

    >>> y, push_forward = linearize(lambda x: x**2, 3.0)
    >>> push_forward(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    return linearize_of("linearize", fun, primals, has_aux)


def linearize_of(who: str, fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> Any:
    """Compute `linearize`, for which `who` is asked, in messages."""
    check_callable(who, fun, expected=FUNCTION_AND_ARGUMENTS)
    check_arguments(who, fun, function_name(fun), primals)
    values, f, derivative = _linearized(who, fun, primals, has_aux, fun, "linearize")
    result = f.unflatten(values), derivative
    return (*result, f.aux(values)) if has_aux else result


def linear_transpose(fun: Callable[..., Any], *primals: Any, adjoint: bool = False) -> Callable[..., tuple[Any, ...]]:
    """Transpose a linear function: map cotangents of its result to cotangents of its arguments.

    Args:
      primals: pytrees of arrays or of anything with shape and dtype; values are not used.
      adjoint: conjugate, so that of complex arrays <y, f(x)> = <f*(y), x> for the inner product sum(conj(y) x).
    Returns: a function of the cotangent, giving a tuple with one entry per primal.
    Raises: TypeError if primals are not inexact, or the cotangent is of another type than the result;
      LinearityError (a TypeError and a NotImplementedError) naming the reason, the equation and the line if `fun` is
      not linear.

    >>> linear_transpose(lambda x: 3 * x, 1.0)(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    f, tree, linear, consts = linear_jaxpr("linear_transpose", fun, primals, weak=True)
    halves = unzip_jaxpr(linear, linear.linear_in)
    known = eval_jaxpr(halves.primal, consts)
    residuals = known[len(known) - halves.residuals :]

    some = halves.linear_out
    program = linearization.LinearizedJaxpr(halves.linear, residuals, some, [v.aval for v in linear.outvars])
    domain = TangentSpace.of_arguments(tree, program.in_avals)
    codomain = TangentSpace(f.out_tree, tuple(program.out_avals))
    form = PullBackForm(tree, f"{'adjoint' if adjoint else 'transposed'}_of_{f.__name__}", adjoint)
    return PullBack(LinearMap.of(_of_inexact(program), domain, codomain, "linear_transpose", f.__name__), form)


def linear_jaxpr(
    who: str,
    fun: Callable[..., Any],
    args: Sequence[Any],
    argnums: Any = None,
    strict: bool = False,
    weak: bool = False,
) -> tuple["FlatFunction", Any, Jaxpr, tuple[Any, ...]]:
    """Trace a function that must be linear, and check that its program is.

    Args:
      args: pytrees of arrays or of anything with shape and dtype.
      argnums: in which arguments it is linear; all of them if None.
      weak: whether arguments that are weakly typed are so in the program.
    Returns: the flat function, the structure of its arguments, the program with linear inputs, and its constants.
    Raises: TypeError if `fun` is no function, an argument no array, or such an argument not inexact; LinearityError
      if the function is not linear.
    """
    check_callable(who, fun)
    chosen = range(len(args)) if argnums is None else canonical_argnums(who, argnums, args, fun)
    flat, tree = pytree.flatten(tuple(args))
    is_linear = [i in chosen for i, x in enumerate(args) for _ in pytree.flatten(x)[0]]
    avals = [_type_of(who, x) if weak else _type_of(who, x).strong() for x in flat]
    for aval, linear in zip(avals, is_linear):
        if linear and not dtypes.is_inexact(aval.dtype):
            raise TypeError(f"{who}: arguments must be floating point or complex, not {aval}.")
    f = FlatFunction(who, fun, tree, False)
    jaxpr, consts = trace_to_jaxpr(f, avals, what=who, function=fun)
    program = mark_linear(jaxpr, [*[False] * len(consts), *is_linear])
    _check_with_values(program, consts, strict)
    return f, tree, program, consts


def _check_with_values(program: Jaxpr, consts: Sequence[Any], strict: bool) -> None:
    """Check linearity; look at the values of constants only if it fails, as zeros among them may save it."""
    with contextlib.suppress(LinearityError):
        return check_linear(program, strict)
    return check_linear(program, strict, zeros_among(consts))


def zeros_among(consts: Sequence[Any]) -> list[bool]:
    """Flag the values whose elements are all zero. Waits for the device."""
    return [x is not None and not x.any() for x in map(known_elements, consts)]


# ---- flat functions ------------------------------------------------------------------------------------------


class FlatFunction:
    """Adapter of a function of pytrees to flat arrays, which remembers the structure of its result."""

    def __init__(self, who: str, fun: Callable[..., Any], in_tree: Any, has_aux: bool, function: Any = None) -> None:
        self._who = who
        self._fun = fun
        self.in_tree: Final = in_tree
        self._has_aux = has_aux
        self.out_tree: Any = None
        self.num_results: int = 0
        self._aux_tree: Any = None
        self.__name__: Final = function_name(function or fun)

    def __call__(self, *flat: Any) -> list[Any]:
        args = pytree.unflatten(self.in_tree, flat)
        try:
            out = self._fun(*args)
        except TypeError as error:
            _explain_lists(self._who, error, args)
            raise
        aux: list[Any] = []
        if self._has_aux:
            out, aux = split_aux(self._who, out, self.__name__)
            aux, self._aux_tree = pytree.flatten(aux)
        check_arrays(f"{self._who}: the result{{}} of {self.__name__}", out)
        leaves, self.out_tree = pytree.flatten(out)
        self._aux_static = [None if is_arraylike(x) else x for x in aux]
        arrays = [forward.Aux(x) for x in aux if is_arraylike(x)]
        self.num_results = len(leaves) + len(arrays)
        return [*leaves, *arrays]

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """Unflatten the leaves of the result; the leaves of aux, which follow, are left out."""
        return pytree.unflatten(self.out_tree, [own_array(x) for x in leaves[: self.out_tree.num_leaves]])

    def aux(self, leaves: Sequence[Any]) -> Any:
        """Return the auxiliary result."""
        arrays = map(own_array, leaves[self.out_tree.num_leaves :])
        return pytree.unflatten(self._aux_tree, [next(arrays) if x is None else x for x in self._aux_static])


def _vjp(who: str, fun: Any, primals: Sequence[Any], has_aux: bool, function: Any) -> tuple[Any, PullBack, Any]:
    own = pytree.tree_map(lambda x: own_array(x) if dtypes.is_inexact(aval_of(x).dtype) else x, tuple(primals))
    values, f, derivative = _linearized(who, fun, own, has_aux, function, "vjp")
    form = PullBackForm(f.in_tree, f"pull_back_of_{f.__name__}", False, positions(derivative.residuals, own))
    return f.unflatten(values), PullBack(derivative, form), f.aux(values) if has_aux else None


def _linearized(
    who: str, fun: Any, primals: Sequence[Any], has_aux: bool, function: Any, caller: str
) -> tuple[list[Any], FlatFunction, LinearMap]:
    """Compute the values of a function, aux among them, and its derivative, which `caller` applies, in messages."""
    given, tree = pytree.flatten(tuple(primals))
    flat = [own_array(x) if dtypes.is_inexact(aval_of(x).dtype) else x for x in given]
    f = FlatFunction(who, fun, tree, has_aux, function)
    values, program = leaks.check_leaks(lambda: linearization.linearize(f, flat, function, who))
    n = f.out_tree.num_leaves
    domain = TangentSpace.of_arguments(tree, tuple(map(aval_of, flat)))
    codomain = TangentSpace(f.out_tree, program.out_avals[:n])
    results = linearization.LinearizedJaxpr(
        program.jaxpr, program.residuals, program.nonzero[:n], program.out_avals[:n]
    )
    return values, f, LinearMap.of(_of_inexact(results), domain, codomain, caller, f.__name__)


def _of_inexact(program: linearization.LinearizedJaxpr) -> linearization.LinearizedJaxpr:
    """Restrict a linear jaxpr to the results that have tangents."""
    kept = [i for i, aval in enumerate(program.out_avals) if dtypes.is_inexact(aval.dtype)]
    nonzero, avals = [program.nonzero[i] for i in kept], [program.out_avals[i] for i in kept]
    return linearization.LinearizedJaxpr(program.jaxpr, program.residuals, nonzero, avals)


# ---- what users give -----------------------------------------------------------------------------------------


def check_scalar(who: str, leaves: Sequence[Any], tree: Any, fun: Any, holomorphic: bool | None) -> None:
    """Check a result. Raises: TypeError if it is no scalar, or of another kind; holomorphic=None offers no promise."""
    if len(leaves) != 1 or tree.num_nodes != 1:
        raise TypeError(
            f"{who}: {function_name(fun)} must return a scalar, but returned {structure(tree, leaves)}.\n"
            "  Use has_aux=True if it returns (scalar, aux), else tl.vjp or tl.jacrev."
        )
    aval = aval_of(leaves[0])
    if aval.shape:
        raise TypeError(
            f"{who}: {function_name(fun)} must return a scalar, but returned {aval}.\n"
            "  Reduce it (tnp.sum or tnp.mean), or use tl.vjp or tl.jacrev."
        )
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise TypeError(
            f"{who}: with holomorphic=True the result must be complex, but {function_name(fun)} returned {aval}."
        )
    if not holomorphic and dtypes.is_complex(aval.dtype):
        raise TypeError(
            f"{who}: {function_name(fun)} returned {aval}; a gradient is defined for real results.\n"
            f"  Take the real part or a modulus{', or pass holomorphic=True' if holomorphic is not None else ''}."
        )
    if not dtypes.is_inexact(aval.dtype):
        raise TypeError(f"{who}: {function_name(fun)} returned {aval}, and {no_derivative(aval)}")


def _explain_lists(who: str, error: TypeError, args: Sequence[Any]) -> None:
    """Add to Python's message about a list as operand what a list stands for as an argument."""
    told = str(error)
    hint = f"{who}: a list is a pytree, whose elements are arguments each. Give an array."
    is_operand = "unsupported operand type" in told and "'list'" in told and any(isinstance(x, list) for x in args)
    if is_operand and hint not in told:  # each derivative of a derivative comes here with the same error
        error.args = (f"{told}\n  {hint}",)


def split_aux(who: str, out: Any, name: str) -> tuple[Any, Any]:
    """Split the result of a function of this name. Raises: TypeError if it is no (value, aux)."""
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        leaves, tree = pytree.flatten(out)
        raise TypeError(
            f"{who}: with has_aux=True {name} must return (value, aux), but returned {structure(tree, leaves)}."
        )
    value, aux = out
    return value, aux


def _check_sequences(primals: Any, tangents: Any) -> None:
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise TypeError(f"jvp: {name} must be a tuple or list, one entry per argument, not {given!r}.")
    if len(primals) != len(tangents):
        raise TypeError(f"jvp: {len(primals)} primals were given, but {len(tangents)} tangents.")


def _type_of(who: str, x: Any) -> ShapedArray:
    if is_arraylike(x):
        return aval_of(x)
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise TypeError(f"{who}: expected arrays, or their types, not {x!r} of type {type(x).__name__}.")
    return ShapedArray(tuple(x.shape), dtypes.canonical(x.dtype), bool(getattr(x, "weak_type", False)))
