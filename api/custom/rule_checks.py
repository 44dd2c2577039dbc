"""Checks of users' rules: structures and types of their results, and linearity."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from tapeless.custom.symbolic_zeros import SymbolicZero
from tapeless.differentiate.tangents import convert_tangent
from tapeless.interpreters.analysis.linearity import check_linear
from tapeless.interpreters.zero import Zero
from tapeless.tracer import dtypes, pytree, source
from tapeless.tracer.core import Primitive
from tapeless.tracer.errors import LinearityError
from tapeless.tracer.jaxpr import Jaxpr, subjaxprs
from tapeless.tracer.linear_vars import mark_linear
from tapeless.tracer.primitives.callback import io_callback_p, pure_callback_p
from tapeless.tracer.primitives.control_flow import while_p
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.operands import known_elements
from tapeless.tracer.types import ShapedArray, aval_of


@contextmanager
def returned_by(rule: Callable[..., Any] | None) -> Generator[None]:
    """Name the place of a user's rule in errors about what it returned."""
    try:
        yield
    except (TypeError, ValueError) as error:
        source.name_rule(error, rule)
        raise


def check_values(
    who: Primitive, rule: str, values: Sequence[Any], tree: Any, want_tree: Any, want: Sequence[ShapedArray]
) -> None:
    """Check that the value of a rule is like the function's. Raises: TypeError naming the paths that differ."""
    if tree != want_tree:
        told = pytree.compare(want_tree, tree, ("the function's value", "the rule's"))
        raise TypeError(f"{who}: {rule} must return the value of the function, but that has another structure.{told}")
    have = [aval_of(y) for y in values]
    if list(map(str, have)) != list(map(str, want)):
        paths = [pytree.keystr(path) for path, _ in pytree.leaves_with_path(pytree.unflatten(tree, have))]
        lines = [
            f"  value{path} is {x} by the function, {y} by the rule.\n"
            for path, x, y in zip(paths, want, have, strict=True)
            if str(x) != str(y)
        ]
        told = "".join(pytree.first(lines)).rstrip("\n")
        raise TypeError(f"{who}: {rule} must return the value of the function, but that has other types.\n{told}")


def fitting(t: Any, want: ShapedArray, who: str, of: str) -> Any:
    """Convert a tangent or cotangent that a rule returned to the type `want`, or to `Zero`.

    Where `want` is weak, the type of a Python number, whatever has its shape is converted.
    Raises: TypeError naming both types, in the name of `who`, if it is of another one.
    """
    if type(t) is SymbolicZero:
        return Zero(want) if t.aval.shape == want.shape else convert_tangent(t, want, who, of)
    have = aval_of(t)
    another = have.dtype != want.dtype and dtypes.is_complex(have.dtype) <= dtypes.is_complex(want.dtype)
    if want.weak_type and have.shape == want.shape and another:
        return convert_element_type(t, want.dtype)
    return convert_tangent(t, want, who, of)


def attempt(trace: Callable[[], Any]) -> Any:
    """Call `trace()`; None if it raises.

    A function that looks at values cannot be traced, and yet be computed; of any other mistake we hear from the
    computation, in its own words.
    """
    try:
        return trace()
    except Exception:
        return None


def check_rule_is_linear(program: Jaxpr, consts: Sequence[Any], n: int, what: str, define: str) -> Sequence[int]:
    """Check a rule that was traced.

    Args:
      program: consts, n nonlinear inputs, linear inputs -> results that must be linear in the latter.
      what: the first line of the message. define: the call that takes `check_linear=False`.
    Returns: positions of the results that depend on nothing linear, being zero then.
    Raises: LinearityError naming the equation, its line and the reason. Nothing is said of loops of unknown length and
      calls of the host: whether an iteration that converges is linear in its limit cannot be read off it.
    """
    before = len(consts) + n
    linear = mark_linear(program, [i >= before for i in range(len(program.invars))])
    if _is_undecided(linear):
        return ()
    try:
        check_linear(linear, zero_in=[x is not None and not x.any() for x in map(known_elements, consts)])
    except LinearityError as error:
        message = f"{what}.\n  {error}\n  If that is meant, define the rule with "
        raise LinearityError(f"{message}{define}(..., check_linear=False).", error.reason, error.equation) from None
    return [i for i, v in enumerate(linear.outvars) if not v.linear]


def _is_undecided(jaxpr: Jaxpr) -> bool:
    linear = [eqn for eqn in jaxpr.eqns if any(v.linear for v in eqn.invars)]
    return any(eqn.primitive in _UNDECIDED or any(map(_is_undecided, subjaxprs(eqn.params))) for eqn in linear)


_UNDECIDED = (while_p, pure_callback_p, io_callback_p)
