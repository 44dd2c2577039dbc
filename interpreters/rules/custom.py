"""Rules of custom_jvp, custom_vjp and custom_linear: apply the user's rule, or its transpose in the other mode."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tapeless.interpreters import jvp, partial_eval, transpose, vmap
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.index_rows import without_row
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.rules.call import call_primal
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, are_nonzero, instantiate, with_zeros, zeros_of
from tapeless.tracer import core, dtypes, source
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import where_true
from tapeless.tracer.jaxpr import Equation, Jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import custom as c
from tapeless.tracer.printing import records
from tapeless.tracer.types import ShapedArray, aval_of


def differentiated_closure(kind: Any, name: str, x: Any) -> TypeError:
    """Return the error for a differentiated value that a function with a custom derivative closes over."""
    here = source.describe_here()
    called = f"\n  It was called at {here}." if here else ""
    return TypeError(
        f"{kind}: {name} closes over a value that is being differentiated, {aval_of(x)}, "
        f"for which its rule has no tangent.{called}\n  Pass it as an argument."
    )


def _custom_jvp(
    primals: Any, tangents: Any, *, kind: Primitive, custom: Any, n_consts: int | None, **_: Any
) -> tuple[Any, Any]:
    n = n_consts or 0
    for x, t in zip(primals[:n], tangents[:n]):
        if type(t) is not Zero:
            raise differentiated_closure(kind, custom.__name__, x)
    return custom.rule(primals[n:], tangents[n:])


def _custom_partial_eval(trace: UnzipTrace, args: Any, **params: Any) -> Any:
    return core.under(trace, c.call_custom, *args, **params)


def _custom_transpose(cts: Any, totals: Any, *args: Any, jaxpr: Jaxpr, **_: Any) -> Any:
    return transpose.rules[call.jit_p](cts, totals, *args, jaxpr=jaxpr)


class _Batched:
    """A custom_jvp or custom_vjp function and its rule, batched for `size` examples."""

    def __init__(self, custom: Any, size: int, dims: Any) -> None:
        self._custom, self._size, self._dims = custom, size, list(dims)
        self._axis_name = vmap.axis_name()
        self.__name__ = f"vmap_{custom.__name__}"

    def function(self, *args: Any) -> list[Any]:
        return vmap.vmap_to_front(self._custom.function, args, self._dims, self._size, self._custom, self._axis_name)

    def traced(self, avals: tuple[ShapedArray, ...]) -> tuple[Jaxpr, tuple[Any, ...]]:
        """Return the batched function as a program, and its constants, which are the same for all examples."""
        of_one = [
            a if d is None else a.update(shape=(*a.shape[:d], *a.shape[d + 1 :])) for a, d in zip(avals, self._dims)
        ]

        def batched() -> tuple[Jaxpr, tuple[Any, ...]]:
            program, consts = self._custom.traced(tuple(of_one))
            return vmap.batch_jaxpr(program, self._size, (*[None] * len(consts), *self._dims)), consts

        return vmap.mapping(self._axis_name, self._size, batched)

    def rule(self, primals: Any, tangents: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        some = are_nonzero(tangents)
        some_out: list[bool] = []

        def both(*xs: Any) -> list[Any]:
            outs, out_tangents = self._custom.rule(*with_zeros(xs, some))
            some_out[:] = are_nonzero(out_tangents)
            return [*outs, *where_true(some_out, out_tangents)]

        dims, given = [*self._dims, *where_true(some, self._dims)], [*primals, *where_true(some, tangents)]
        flat = vmap.vmap_to_front(both, given, dims, self._size, name=self._axis_name)
        return with_zeros(flat, some_out)


def _custom_vmap(
    size: int, args: Any, dims: Any, *, kind: Primitive, custom: Any, jaxpr: Jaxpr | None, n_consts: int | None
) -> Any:
    batched = _Batched(custom, size, dims[n_consts or 0 :])
    program = None if jaxpr is None else vmap.batch_jaxpr(jaxpr, size, tuple(dims))
    outs = kind.bind(*args, custom=batched, jaxpr=program, n_consts=n_consts)
    return outs, [0] * len(outs)


for _kind in (c.custom_jvp_p, c.custom_vjp_p):
    jvp.rules[_kind] = partial(_custom_jvp, kind=_kind)
    partial_eval.rules[_kind] = _custom_partial_eval
    transpose.rules[_kind] = transpose.Accumulating(_custom_transpose)
    vmap.rules[_kind] = partial(_custom_vmap, kind=_kind)
    vmap.calling_later[_kind] = None

# ---- custom_linear -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pull:
    """The linear map of a program `residuals, xs -> ys` with `n` residuals, a `pull` of `custom_linear`.

    If it is `transposed`, the map is the transpose of the program, from ys to xs: the program is a user's backward
    rule, and the map its JVP. If it is `unchecked`, the program need not be linear, or has effects: it is run as often
    as the function was called, also for cotangents that are known to be 0.
    Source: Radul et al. 2023, transposition being its own inverse.
    """

    jaxpr: Jaxpr
    n: int
    name: str
    transposed: bool = True
    unchecked: bool = False

    @property
    def __name__(self) -> str:
        return f"transpose_{self.name}" if self.transposed else self.name

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """Types of the inputs of the map."""
        return self.jaxpr.out_avals if self.transposed else self.jaxpr.in_avals[self.n :]

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """Types of the results of the map."""
        return self.jaxpr.in_avals[self.n :] if self.transposed else self.jaxpr.out_avals

    def check(self, residuals: Sequence[ShapedArray], tangents: Sequence[ShapedArray]) -> None:
        """Check the types of residuals and inputs. Raises: TypeError naming both, if the program takes others."""
        wanted = *self.jaxpr.in_avals[: self.n], *self.in_avals
        call.check_types(f"custom_linear: {self.__name__}", "takes", wanted, (*residuals, *tangents))

    def closed(self, avals: Sequence[ShapedArray]) -> tuple[tuple[Any, ...], "Pull"]:
        """Return the arrays that the map closes over, here none, and the map without them, here itself."""
        return (), self

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any]) -> tuple[Any, ...]:
        """Apply the transposed map to cotangents."""
        there = self.altered(self.jaxpr, not self.transposed)
        return c.custom_linear(there, residuals, list(map(instantiate, cts)))

    def forward(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
        """Apply the map. Raises: NotImplementedError if the program must be transposed and cannot be."""
        if not self.transposed:
            return call.jit(self.jaxpr, *residuals, *tangents)
        try:
            return self._forward_by_transposition(list(residuals), tangents)
        except NotImplementedError as error:
            raise NotImplementedError(
                f"custom_vjp: forward mode transposes {self.name}, which cannot be transposed.\n"
                f"  {str(error).replace(transpose.FORWARD_WORKS, '')}\n"
                "  Use reverse mode, or give the function a JVP rule (custom_jvp), which serves both modes; for "
                "iterations to a solution\n  lax.custom_root and lax.custom_linear_solve do, too."
            ) from None

    def batched(self, size: int, dims: Sequence[int | None]) -> "Pull":
        """Batch the map for `size` examples; mapped axes of residuals are at `dims`, all others first."""
        there = (*dims, *[0] * (len(self.jaxpr.invars) - self.n))
        return self.altered(vmap.batch_jaxpr(self.jaxpr, size, there), self.transposed)

    def altered(self, jaxpr: Jaxpr, transposed: bool) -> "Pull":
        """Make the map of another program of as many residuals."""
        return Pull(jaxpr, self.n, self.name, transposed, self.unchecked)

    def _forward_by_transposition(self, residuals: list[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
        """Apply the transpose of the program; unzip it first, as it may compute nonlinear values (a loop's counter)."""
        halves = partial_eval.unzip_body(self.jaxpr, tuple([i >= self.n for i in range(len(self.jaxpr.invars))]))
        _, saved = call_primal(halves, residuals, call.jit)
        given = where_true(halves.linear_out, tangents)
        program, some = transpose.transpose_jaxpr(halves.linear, (True,) * len(given))
        pushed = iter(call.jit(program, *saved, *given))
        return tuple([next(pushed) if yes else instantiate(Zero(aval)) for yes, aval in zip(some, self.out_avals)])


@dataclass(frozen=True)
class ReverseOnlyPull(Pull):
    """A map by a program that is known to have no transpose; `refusal` is the error message of forward mode."""

    refusal: str = ""

    def forward(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
        """Apply the program. Raises: NotImplementedError if it must be transposed."""
        if self.transposed:
            raise NotImplementedError(self.refusal)
        return super().forward(residuals, tangents)

    def altered(self, jaxpr: Jaxpr, transposed: bool) -> Pull:
        """Make the map of another program of as many residuals."""
        return replace(self, jaxpr=jaxpr, transposed=transposed)


@dataclass(frozen=True)
class _ZeroPull:
    """The linear map from one value to zeros of the types `out_avals`, a `pull` of `custom_linear`."""

    in_aval: ShapedArray
    out_avals: tuple[ShapedArray, ...]
    __name__ = "zeros"

    def check(self, residuals: Sequence[ShapedArray], tangents: Sequence[ShapedArray]) -> None:
        """Accept any types: the map to zeros looks at no value."""

    def closed(self, avals: Sequence[ShapedArray]) -> tuple[tuple[Any, ...], "_ZeroPull"]:
        return (), self

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any]) -> tuple[Any, ...]:
        return (Zero(self.in_aval),)

    def forward(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
        return tuple([instantiate(Zero(aval)) for aval in self.out_avals])

    def batched(self, size: int, dims: Sequence[int | None]) -> "_ZeroPull":
        ins, *outs = [a.update(shape=(size, *a.shape)) for a in (self.in_aval, *self.out_avals)]
        return _ZeroPull(ins, tuple(outs))


records.update(Pull=Pull, ReverseOnlyPull=ReverseOnlyPull, _ZeroPull=_ZeroPull)


def linear_zeros(tangents: Sequence[Any]) -> list[Any]:
    """Instantiate the symbolic zeros among tangents, of which one is not zero, as linear values.

    Constants instead would make a rule that reads them look affine, not linear.
    """
    some = next(t for t in tangents if type(t) is not Zero)
    zeros = tuple([t.aval for t in tangents if type(t) is Zero and dtypes.is_inexact(t.aval.dtype)])
    made = iter(c.custom_linear(_ZeroPull(aval_of(some), zeros), (), (some,)) if zeros else ())
    return [
        t if type(t) is not Zero else next(made) if dtypes.is_inexact(t.aval.dtype) else instantiate(t)
        for t in tangents
    ]


def _custom_linear_jvp(primals: Any, tangents: Any, *, pull: Any, n: int) -> tuple[Any, Any]:
    if any(are_nonzero(tangents[:n])):
        return jvp.jvp(partial(c.push_forward, pull=pull, n=n), primals, tangents, pull)
    outs = c.custom_linear(pull, primals[:n], primals[n:])
    if not any(are_nonzero(tangents)):
        return outs, zeros_of(outs)
    return outs, c.custom_linear(pull, primals[:n], list(map(instantiate, tangents[n:])))


def _custom_linear_transpose(cts: Any, *args: Any, pull: Any, n: int) -> Any:
    if any(map(is_linear, args[:n])):
        raise transpose.not_linear(c.custom_linear_p, "a linear value is among its residuals")
    pulled = pull.backward(args[:n], cts)
    return (*[None] * n, *[ct if is_linear(t) else None for t, ct in zip(args[n:], pulled, strict=True)])


def _custom_linear_vmap(size: int, args: Any, dims: Any, *, pull: Any, n: int) -> Any:
    of_one = tuple([aval_of(x).update(shape=vmap.example_shape(x, d)) for x, d in zip(args[:n], dims)])
    consts, closed = vmap.mapping(vmap.axis_name(), size, pull.closed, of_one)
    pushed = [vmap.materialized(t, d, size) for t, d in zip(args[n:], dims[n:])]
    residual_dims = [*[None] * len(consts), *dims[:n]]
    outs = c.custom_linear(closed.batched(size, residual_dims), [*consts, *args[:n]], pushed)
    return outs, [0] * len(outs)


def _custom_linear_linear(check: linearity.Check, eqn: Equation, facts: linearity.Facts) -> linearity.Facts:
    fact = check.jointly(eqn, facts, range(eqn.params["n"], len(facts)))
    return (fact,) * len(eqn.outvars)


linearity.rules[c.custom_linear_p] = _custom_linear_linear
jvp.rules[c.custom_linear_p] = _custom_linear_jvp
transpose.rules[c.custom_linear_p] = _custom_linear_transpose
vmap.rules[c.custom_linear_p] = _custom_linear_vmap
vmap.calling_later[c.custom_linear_p] = None

# ---- index rows ----------------------------------------------------------------------------------------------

without_row(
    "its rules are for all of its operands, so it is not taken apart", c.custom_jvp_p, c.custom_vjp_p, c.custom_linear_p
)
