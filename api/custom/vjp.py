"""Functions whose backward rule the user gives; forward mode is its transpose.

A call differentiated runs the forward rule, and its tangents go through `custom_linear`: transposed that is the user's
backward rule, applied it is the transpose of that rule. So either mode uses what the user wrote, and once.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tapeless.arguments.argument_checks import check_arrays, check_callable, check_takes
from tapeless.arguments.held_references import holding
from tapeless.custom.boolean_residuals import flags_kept
from tapeless.custom.bwd import Backward, BackwardSignature, name_of
from tapeless.custom.calls import CustomFunction, FlatCall, Nondiff
from tapeless.custom.rule_checks import returned_by
from tapeless.custom.symbolic_zeros import CustomVJPPrimal
from tapeless.interpreters.zero import Zero, zeros_of
from tapeless.tracer import dtypes, pytree, source
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import custom
from tapeless.tracer.types import aval_of

P = ParamSpec("P")
R = TypeVar("R")
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class custom_vjp(CustomFunction[P, R]):
    """A function with its own backward rule, which defines both modes of differentiation.

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums, nondiff_argnames: arguments without a derivative, which need not be arrays, but may be, traced
        too. The forward rule takes them in their places, the backward rule first and in order.
    Raises: ValueError for a name that is not among the parameters; when called, AttributeError if there is no rule,
      TypeError if another argument, or a result, is no array, ValueError for a number that is out of range, and where
      it is differentiated TypeError if what the rules return does not fit, LinearityError as `defvjp` says.

    >>> @custom_vjp
    ... def double(x):
    ...     return 2.0 * x
    >>> double.defvjp(lambda x: (double(x), None), lambda residuals, ct: (2.0 * ct,))
    """

    primitive: Primitive = custom.custom_vjp_p

    def _define(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int], nondiff_argnames: str | Sequence[str]
    ) -> None:
        super()._define(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros: bool = False
        self.reverse_only: str | None = None  # the error of forward mode, if the backward rule is known to have none

    if TYPE_CHECKING:

        def __new__(
            cls,
            fun: Callable[Parameters, Result],
            nondiff_argnums: Sequence[int] = (),
            nondiff_argnames: str | Sequence[str] = (),
        ) -> "custom_vjp[Parameters, Result]": ...
    else:

        def __init__(
            self,
            fun: Callable[P, R],
            nondiff_argnums: Sequence[int] = (),
            nondiff_argnames: str | Sequence[str] = (),
        ) -> None:
            self._define(fun, nondiff_argnums, nondiff_argnames)

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        *,
        check_linear: bool = True,
    ) -> None:
        """Set the rule.

        Args:
          fwd: `fwd(*args) -> (value, residuals)`, the arguments being those of the function, and the residuals a
            pytree of arrays; truth values of Python stay what they are.
          bwd: `bwd(*nondiff, residuals, cotangent) -> cotangents`, a tuple with one entry per differentiable argument,
            like it, or None where there is no derivative. For a pytree with one leaf, an array may stand. Cotangents
            of integers are not looked at.
          symbolic_zeros: give `fwd` a `CustomVJPPrimal` in the place of every array, which says whether it is
            differentiated, and `bwd` cotangents known to be zero as `SymbolicZero`.
          optimize_remat: as in JAX, and without effect: under `checkpoint` what only makes residuals is dead code.
          check_linear: raise LinearityError, when the rule is first used, if `bwd` is not linear in the cotangent. One
            that is not, because it clips it for example, has no forward mode.
        Raises: NotImplementedError for `optimize_remat` with `symbolic_zeros`, as in JAX.
        """
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError("custom_vjp: optimize_remat=True does not go with symbolic_zeros=True.")
        check_callable("custom_vjp", fwd, "fwd")
        check_callable("custom_vjp", bwd, "bwd")
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros
        self._forget(check_linear)

    def rules(self) -> tuple[Callable[..., Any], ...]:
        """Return the two functions of the rule."""
        return () if self.fwd is None or self.bwd is None else (self.fwd, self.bwd)

    def flat_call(self, nondiff: Nondiff, tree: Any) -> FlatCall:
        """Make a call with arguments of this structure."""
        return _VJPCall(self, nondiff, tree)


class _VJPCall(FlatCall):
    """One call of a custom_vjp function."""

    def describe_rule(self) -> str:
        """Name the forward rule: `the forward rule f_fwd of f`."""
        return f"the forward rule {name_of(self.custom.fwd)} of {self.__name__}"

    def describe_backward(self) -> str:
        """Name the backward rule: `the backward rule f_bwd of f`."""
        return f"the backward rule {name_of(self.custom.bwd)} of {self.__name__}"

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Run the forward rule; tangents go through the transpose of the backward rule.

        Raises: TypeError if what the forward rule returns does not fit.
        """
        some = [type(t) is not Zero for t in tangents[self.n :]]
        out = self._forward(primals, some)
        with returned_by(self.custom.fwd):
            if not isinstance(out, (tuple, list)) or len(out) != 2:
                rule = self.describe_rule()
                raise TypeError(f"custom_vjp: {rule} must return (value, residuals), but returned {out!r}.")
            value, residuals = out
            values, (saved, residual_tree) = self.check_value(value), pytree.flatten(holding(flags_kept(residuals)))
            self._check_residuals(holding(residuals))
        point = BackwardSignature(
            residual_tree,
            self.out_tree,
            tuple([aval_of(y).tangent() for y in values]),
            tuple([aval_of(x).tangent() for x in primals[self.n :]]),
            tuple(some),
        )
        pull = Backward(self, point)
        given = [t for t in tangents[self.n :] if type(t) is not Zero]
        if not given or not pull.out_avals:  # there is nothing to pull back
            return values, list(zeros_of(values))
        pushed = iter(custom.custom_linear(pull, [*primals[: self.n], *saved], given))
        return values, [next(pushed) if dtypes.is_inexact(a.dtype) else Zero(a) for a in point.outs]

    def _forward(self, primals: Sequence[Any], some: Sequence[bool]) -> Any:
        given = primals[self.n :]
        if self.custom.symbolic_zeros:
            given = [CustomVJPPrimal(x, yes) for x, yes in zip(given, some)]
        assert self.custom.fwd is not None  # it was there when the call was made
        args = self.nondiff.inserted(primals[: self.n], pytree.unflatten(self.tree, given))
        with returned_by(self.custom.fwd):
            what = f"as {self.__name__}"
            check_takes(f"custom_vjp: {self.describe_rule()}", self.custom.fwd, len(args), what)
        return source.call_by_rule("custom_vjp", self.custom.fwd, *args)

    def _check_residuals(self, residuals: Any) -> None:
        what = f"custom_vjp: the residual{{}} of {self.describe_rule()}"
        check_arrays(what, residuals, "\n  Pass it on in an argument named in nondiff_argnums.")
