"""Functions whose JVP the user gives; reverse mode is its transpose."""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from tapeless.arguments.argument_checks import check_arrays, check_callable, check_takes
from tapeless.custom.calls import CustomFunction, FlatCall, Nondiff
from tapeless.custom.rule_checks import attempt, check_rule_is_linear, fitting, returned_by
from tapeless.custom.symbolic_zeros import SymbolicZero, is_known_zero, symbolic
from tapeless.interpreters.rules.custom import linear_zeros
from tapeless.interpreters.zero import Zero, instantiate, with_zeros
from tapeless.tracer import dtypes, pytree, source
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import where_true
from tapeless.tracer.primitives import custom
from tapeless.tracer.primitives.elementwise import add
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of

P = ParamSpec("P")
R = TypeVar("R")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Rule = TypeVar("Rule", bound=Callable[..., Any])


class custom_jvp(CustomFunction[P, R]):
    """A function with its own JVP rule, which defines both modes of differentiation.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that are passed to the rule as they are, first and in order; they
        need not be arrays, but may be, traced too.
    Raises: ValueError for a name that is not among the parameters; when called, AttributeError if there is no rule,
      TypeError if another argument, or a result, is no array, ValueError for a number that is out of range, and where
      it is differentiated TypeError if what the rule returns does not fit, LinearityError as `defjvp` says.

    >>> @custom_jvp
    ... def double(x):
    ...     return 2.0 * x
    >>> @double.defjvp
    ... def double_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return double(x), 2.0 * t
    """

    primitive: Primitive = custom.custom_jvp_p

    def _define(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int], nondiff_argnames: str | Sequence[str]
    ) -> None:
        super()._define(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros: bool = False

    if TYPE_CHECKING:

        def __new__(
            cls,
            fun: Callable[Parameters, Result],
            nondiff_argnums: Sequence[int] = (),
            nondiff_argnames: str | Sequence[str] = (),
        ) -> "custom_jvp[Parameters, Result]": ...
    else:

        def __init__(
            self,
            fun: Callable[P, R],
            nondiff_argnums: Sequence[int] = (),
            nondiff_argnames: str | Sequence[str] = (),
        ) -> None:
            self._define(fun, nondiff_argnums, nondiff_argnames)

    def defjvp(self, jvp: Rule, symbolic_zeros: bool = False, *, check_linear: bool = True) -> Rule:
        """Set the rule `jvp(*nondiff, primals, tangents) -> (value, tangent)`; returns it, so it can decorate.

        Args:
          symbolic_zeros: give tangents that are known to be zero as `SymbolicZero`, not as arrays of zeros.
          check_linear: raise LinearityError, when the rule is first used, if the tangent that it returns is not linear
            in those given to it. One that is not has no reverse mode.
        """
        check_callable("custom_jvp", jvp, "the rule")
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        self._forget(check_linear)
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set the rule from one function per argument: `lambda t, value, *primals: tangent`, or None for zero.

        Raises: TypeError if there are arguments without a derivative, which such functions do not take.
        """
        if self.nondiff_argnums:
            raise TypeError(
                f"custom_jvp: defjvps gives {self.__name__} rules that take all arguments as primals, but it has "
                "nondiff_argnums.\n  Use defjvp."
            )

        for row in jvps:
            if row is not None:
                check_callable("custom_jvp", row, "a rule of defjvps")

        function = cast(Any, self)  # of P, but in the rule of whatever it is given

        def rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
            value = function(*primals)
            terms = [
                row(pytree.tree_map(_array, t), value, *primals)
                for row, t in zip(jvps, tangents, strict=True)
                if row is not None and not all(type(x) is SymbolicZero for x in pytree.leaves(t))
            ]
            zeros = pytree.tree_map(SymbolicZero.from_primal_value, value)
            return value, functools.reduce(lambda a, b: pytree.tree_map(add, a, b), terms) if terms else zeros

        self.defjvp(rule, symbolic_zeros=True)

    def rules(self) -> tuple[Callable[..., Any], ...]:
        """Return the rule."""
        return () if self.jvp is None else (self.jvp,)

    def flat_call(self, nondiff: Nondiff, tree: Any) -> FlatCall:
        """Make a call with arguments of this structure."""
        return _JVPCall(self, nondiff, tree)


def _array(t: Any) -> Any:
    return instantiate(Zero(t.aval)) if type(t) is SymbolicZero else t


class _JVPCall(FlatCall):
    """One call of a custom_jvp function."""

    def describe_rule(self) -> str:
        """Name the rule: `the rule of f`."""
        return f"the rule of {self.__name__}"

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Apply the rule. Raises: TypeError if the value and the tangent that it returns do not fit together."""
        out = self._applied(primals, tangents)
        with returned_by(self.custom.jvp):
            return self._checked(out)

    def _checked(self, out: Any) -> tuple[list[Any], list[Any]]:
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(f"custom_jvp: {self.describe_rule()} must return (value, tangent), but returned {out!r}.")
        value, tangent = out
        (pushed, tangent_tree), tree = pytree.flatten(tangent), pytree.structure(value)
        if tangent_tree != tree:
            raise TypeError(
                f"custom_jvp: {self.describe_rule()} returned a value and a tangent that differ in structure."
                f"{pytree.compare(tree, tangent_tree, ('the value', 'the tangent'))}"
            )
        values = self.check_value(value)
        check_arrays(f"{self.primitive}: the tangent{{}} of {self.describe_rule()}", tangent)
        return values, [self._tangent(y, t) for y, t in zip(values, pushed)]

    def _applied(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        given = pytree.unflatten(self.tree, primals[self.n :])
        given_tangents = list(map(symbolic, tangents)) if self.custom.symbolic_zeros else linear_zeros(tangents)
        pushed = pytree.unflatten(self.tree, given_tangents[self.n :])
        assert self.custom.jvp is not None  # it was there when the call was made
        args = (*self.nondiff.values(primals[: self.n]), tuple(given), tuple(pushed))
        with returned_by(self.custom.jvp):
            what = self.nondiff.before("the primals and the tangents")
            check_takes(f"custom_jvp: {self.describe_rule()}", self.custom.jvp, len(args), what)
        return source.call_by_rule("custom_jvp", self.custom.jvp, *args)

    def _tangent(self, y: Any, t: Any) -> Any:
        want = aval_of(y).tangent()
        if want.dtype == dtypes.float0:
            return Zero(want)
        return fitting(t, want, f"custom_jvp: a tangent from {self.describe_rule()}", f"its value {aval_of(y)}")

    def rule(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Apply the user's rule. A tangent that it makes of no tangent is seen to be zero, where that can be seen."""
        values, pushed = super().rule(primals, tangents)
        constant = self.custom.cache.constant.get(self.key([aval_of(x) for x in primals]), ())
        return values, [Zero(aval_of(t)) if i in constant and is_known_zero(t) else t for i, t in enumerate(pushed)]

    def check_linear(self, avals: tuple[ShapedArray, ...]) -> None:
        """Raise LinearityError if the tangent that the rule returns is not linear in the tangents given to it."""
        if not self.custom.is_linear:
            return
        n, differentiable = len(avals), [i >= self.n and dtypes.is_inexact(a.dtype) for i, a in enumerate(avals)]

        def pushed(*xs: Any) -> list[Any]:
            return list(map(instantiate, self.push(*with_zeros(xs, differentiable))[1]))

        of_tangents = where_true(differentiable, avals)
        trace = functools.partial(trace_to_jaxpr, pushed, [*avals, *of_tangents], what="custom_jvp", function=self)
        found = source.at(None, attempt, trace)
        if found is not None:
            what = f"custom_jvp: the tangent that {self.describe_rule()} returns is not linear in the tangents"
            program, consts = found
            constant = check_rule_is_linear(program, consts, n, what, f"{self.__name__}.defjvp")
            self.custom.cache.constant[self.key(avals)] = constant
