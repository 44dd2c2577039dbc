"""Rules of custom_jvp, custom_vjp, custom_linear and custom_vmap: the user's, or what is derived from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Any

from tapeless.interpreters import jvp, partial_eval, transpose, vmap
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.index_rows import without_row
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.rules.call import call_primal
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, are_nonzero, instantiate, with_zeros, zero_of, zeros_of
from tapeless.tracer import core, dtypes, passes, source
from tapeless.tracer.core import Primitive
from tapeless.tracer.flags import Flags, merge_lists, where_false, where_true
from tapeless.tracer.jaxpr import Equation, Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import call
from tapeless.tracer.primitives import custom as c
from tapeless.tracer.printing import records
from tapeless.tracer.staging import trace_to_jaxpr
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
    pushed = [vmap.move_mapped_axis_first(t, d, size) for t, d in zip(args[n:], dims[n:])]
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

# ---- custom vmap rules ---------------------------------------------------------------------------------------
# Derivatives of a function with a vmap rule have vmap rules too.
#
# The vmap rule of the jvp of such a function is the jvp of its vmap rule. Both halves of an unzipped function, and
# the transpose of its linear half, get vmap rules likewise. The primal half cannot save the residuals of the user's
# rule: it is not known yet whether there will be a vmap, and of what size. So the linear half takes the primal inputs
# besides the residuals, and its vmap rule starts again from these inputs. Without vmap it is an ordinary program of
# its residuals.


Pairs = Sequence[tuple[Any, bool]]  # values, and whether they have the mapped axis, first


class _Pushed:
    """The vmap rule of a jvp: arguments, tangents of `some` of them -> results, tangents of `some_out` of them.

    of_consts: types of constants with a tangent, which the rule cannot have.
    """

    def __init__(self, rule: Any, n: int, some: Flags, some_out: Flags, of_consts: Sequence[Any]) -> None:
        self._rule, self._n, self._some, self._some_out, self._of_consts = rule, n, some, some_out, list(of_consts)
        self.tangents = sum(some_out)  # how many of the results, the last ones, are tangents
        self.__name__ = f"jvp_{rule.__name__}"

    def __call__(self, size: int, args: Sequence[Any], mapped: Sequence[bool]) -> tuple[list[Any], list[bool]]:
        if self._of_consts:
            raise TypeError(
                f"custom_vmap: {self._rule.__name__} closes over a value that is being differentiated, "
                f"{self._of_consts[0]}, which its rule is not given.\n  Pass it as an argument."
            )
        each = [(args[k], mapped[k]) for k in range(self._n)]
        given = iter(zip(args[self._n :], mapped[self._n :], strict=True))
        pushed = [next(given) if yes else None for yes in self._some]
        both = [x or (t is not None and t[1]) for (_, x), t in zip(each, pushed)]
        primals = [_as(x, was, now, size) for (x, was), now in zip(each, both)]
        tangents = [zero_of(x) if t is None else _as(*t, now, size) for x, t, now in zip(primals, pushed, both)]
        out_mapped: list[bool] = []

        def outs(*xs: Any) -> list[Any]:
            results, out_mapped[:] = self._rule(size, xs, both)
            return results

        values, out_tangents = jvp.jvp(outs, primals, tangents, self._rule)
        given_back = map(instantiate, where_true(self._some_out, out_tangents))
        return [*values, *given_back], [*out_mapped, *where_true(self._some_out, out_mapped)]


def _as(x: Any, was: bool, now: bool, size: int) -> Any:
    """Repeat x along a new first axis if it is to be mapped `now`, and `was` not."""
    return vmap.move_mapped_axis_first(x, None, size) if now and not was else x


def _custom_vmap_jvp(primals: Any, tangents: Any, *, rule: Any, jaxpr: Jaxpr, n_consts: int) -> Any:
    some = are_nonzero(tangents)
    inexact = tuple([aval.tangent().dtype != dtypes.float0 for aval in jaxpr.out_avals])
    program, outer, some_out = jvp.jvp_jaxpr(jaxpr, some, inexact)  # zero tangents may be nonzero in the user's rule
    of_consts = list(map(aval_of, where_true(some[:n_consts], primals[:n_consts])))
    pushed = _Pushed(rule, len(primals) - n_consts, some[n_consts:], some_out, of_consts)
    given = [*primals[n_consts:], *where_true(some, tangents)]
    results = c.custom_vmap(pushed, program, [*outer, *primals[:n_consts]], given)
    return with_zeros(results, some_out)


# ---- custom vmap rules: unzip and transpose -------------------------------------------------------------------


class _Part:
    """The base of vmap rules of a half of a function, which the function's own vmap rule `rule` computes.

    linear_in, linear_out: flags of the function's linear inputs, of which the first `n_consts` are constants, and of
    its linear results.
    """

    def __init__(self, rule: Any, linear_in: Flags, linear_out: Flags, n_consts: int) -> None:
        self.rule, self.linear_in, self.linear_out, self.n_consts = rule, linear_in, linear_out, n_consts
        self.primals = len(linear_in) - sum(linear_in)
        self.__name__: str = rule.__name__

    def apply_rule(self, size: int, primals: Pairs, linear: Pairs) -> tuple[list[Any], list[bool]]:
        """Apply the function's own rule to pairs (value, is it mapped); return its results and their flags."""
        pairs = merge_lists(self.linear_in, linear, primals)
        _check_not_given(self.rule, [(x, 0 if m else None) for x, m in pairs[: self.n_consts]])
        given = pairs[self.n_consts :]
        return self.rule(size, [x for x, _ in given], [m for _, m in given])


class _PrimalRule(_Part):
    """The vmap rule of the primal half: primal inputs -> primal results, residuals of the batched program `jaxpr`."""

    def __init__(self, part: _Part, jaxpr: Jaxpr, linear_avals: Sequence[ShapedArray]) -> None:
        super().__init__(part.rule, part.linear_in, part.linear_out, part.n_consts)
        self._jaxpr, self._linear_avals = jaxpr, linear_avals

    def __call__(self, size: int, args: Sequence[Any], mapped: Sequence[bool]) -> tuple[list[Any], list[bool]]:
        out_mapped: list[bool] = []
        n = len(self.linear_out) - sum(self.linear_out)
        residuals = passes.rearrange_program(self._jaxpr, range(len(args)), range(n, len(self._jaxpr.outvars)))

        def outs(*xs: Any) -> list[Any]:
            zeros = [(instantiate(Zero(aval)), False) for aval in self._linear_avals]
            results, flags = self.apply_rule(size, list(zip(xs, mapped)), zeros)
            out_mapped[:] = where_false(self.linear_out, flags)
            return where_false(self.linear_out, results)

        # Staged, to remove the equations that only the linear results need.
        program, consts = trace_to_jaxpr(outs, [aval_of(x) for x in args], what="vmap", function=self.rule)
        results = eval_jaxpr(passes.dead_code(program), [*consts, *args])
        dims = tuple([0 if yes else None for yes in mapped])
        kept = eval_jaxpr(vmap.batch_jaxpr(residuals, size, dims), args)
        return [*results, *kept], [*out_mapped, *[True] * len(kept)]


class _LinearRule(_Part):
    """The vmap rule of the linear half: residuals, primal inputs, linear inputs -> linear results.

    It applies the function's own rule to the primal inputs again, and ignores the residuals.
    """

    linear = True

    def __call__(self, size: int, args: Sequence[Any], mapped: Sequence[bool]) -> tuple[list[Any], list[bool]]:
        pairs = list(zip(args, mapped))[len(args) - len(self.linear_in) :]
        outs, flags = self.apply_rule(size, pairs[: self.primals], pairs[self.primals :])
        return where_true(self.linear_out, outs), where_true(self.linear_out, flags)


class _Transposed:
    """The vmap rule of a transpose: residuals, primals, cotangents of `nonzero` results -> of all linear inputs."""

    linear = True

    def __init__(self, rule: _LinearRule, nonzero: Flags, linear_avals: Sequence[ShapedArray]) -> None:
        self._rule, self._nonzero, self._linear_avals = rule, nonzero, linear_avals
        self.__name__ = f"transpose_{rule.__name__}"

    def __call__(self, size: int, args: Sequence[Any], mapped: Sequence[bool]) -> tuple[list[Any], list[bool]]:
        n = len(args) - sum(self._nonzero)
        fixed, flags, cts = args[:n], list(mapped[:n]), zip(args[n:], mapped[n:])

        def pushed(*xs: Any) -> list[Any]:
            outs, out_mapped = self._rule(size, xs, [*flags, *[True] * len(self._linear_avals)])
            pairs = where_true(self._nonzero, zip(outs, out_mapped))
            return [vmap.move_mapped_axis_first(y, 0 if m else None, size) for y, m in pairs]

        avals = [aval.update(shape=(size, *aval.shape)) for aval in self._linear_avals]
        program, consts = trace_to_jaxpr(pushed, [*map(aval_of, fixed), *avals], what="vmap", function=self._rule)
        linear_in = (*[False] * (len(consts) + n), *[True] * len(avals))
        every, outs = (True,) * len(avals), (True,) * len(program.outvars)
        # Unzipped, as the rule may compute primal values again, and in the same loop.
        halves = partial_eval.unzip_body(passes.dead_code(program), linear_in, linear_out=outs)
        pulled, _ = transpose.transpose_jaxpr(halves.linear, outs, wanted=every)
        given = [vmap.move_mapped_axis_first(ct, 0 if m else None, size) for ct, m in cts]
        residuals = eval_jaxpr(halves.primal, [*consts, *fixed])
        return list(eval_jaxpr(pulled, [*residuals, *given])), [True] * len(avals)


def _custom_vmap_partial_eval(trace: UnzipTrace, args: Any, *, rule: Any, jaxpr: Jaxpr, n_consts: int) -> Any:
    """Split a custom_vmap function into a primal and a linear one; for its rule, the latter takes primal inputs too."""
    linear_in = tuple(map(trace.is_unknown, args))
    n_tangents = getattr(rule, "tangents", 0)  # linear, even if zero: they may be nonzero in the user's rule
    tangent = tuple([i >= len(jaxpr.outvars) - n_tangents for i in range(len(jaxpr.outvars))])
    halves = partial_eval.unzip_body(jaxpr, linear_in, linear_out=tangent)
    primals, tangents = where_false(linear_in, args), where_true(linear_in, args)
    part = _Part(rule, linear_in, halves.linear_out, n_consts)
    of_primals = _PrimalRule(part, halves.primal, [aval_of(x) for x in tangents])
    outs = c.custom_vmap(of_primals, halves.primal, [], primals)
    n = len(outs) - halves.residuals
    unused = [aval_of(x) for x in primals]
    residuals = range(halves.residuals)
    program = passes.rearrange_program(
        halves.linear,
        [*residuals, *unused, *range(halves.residuals, len(halves.linear.invars))],
        range(len(halves.linear.outvars)),
    )
    params = {"rule": _LinearRule(rule, linear_in, halves.linear_out, n_consts), "jaxpr": program, "n_consts": 0}
    linear = trace.record(c.custom_vmap_p, [*outs[n:], *primals, *tangents], params)
    return merge_lists(halves.linear_out, linear, outs[:n])


def _custom_vmap_transpose(cts: Any, *args: Any, rule: Any, jaxpr: Jaxpr, n_consts: int) -> Any:
    """Transpose a linear custom_vmap function: a custom_vmap function whose rule is the transpose of the rule."""
    nonzero, linear_in = are_nonzero(cts), jaxpr.linear_in  # of which some operands may be zeros, which are not linear
    if not isinstance(rule, _LinearRule):  # a user's, whose arguments have another order
        rule = _LinearRule(rule, linear_in, (True,) * len(cts), n_consts)
    avals = where_true(linear_in, jaxpr.in_avals)
    program = transpose.transpose_jaxpr(jaxpr, nonzero, wanted=(True,) * len(avals))[0]
    given = [*where_false(linear_in, args), *where_true(nonzero, cts)]
    pulled = c.custom_vmap(_Transposed(rule, nonzero, avals), program, [], given)
    return merge_lists(linear_in, pulled, repeat(None))


# ---- custom vmap rules: vmap ----------------------------------------------------------------------------------


def _custom_vmap_vmap(size: int, args: Any, dims: Any, *, rule: Any, jaxpr: Jaxpr, n_consts: int) -> Any:
    _check_not_given(rule, list(zip(args, dims))[:n_consts])
    given, of_given = args[n_consts:], dims[n_consts:]
    fronted = [x if d is None else vmap.to_front(x, d) for x, d in zip(given, of_given)]
    outs, mapped = rule(size, fronted, [d is not None for d in of_given])
    return outs, [0 if yes else None for yes in mapped]


def _check_not_given(rule: Any, consts: Sequence[tuple[Any, Any]]) -> None:
    for x, d in consts:
        if d is not None:
            raise c.mapped_closure(rule.__name__, x, d)


jvp.rules[c.custom_vmap_p] = _custom_vmap_jvp
partial_eval.rules[c.custom_vmap_p] = _custom_vmap_partial_eval
transpose.rules[c.custom_vmap_p] = _custom_vmap_transpose
vmap.rules[c.custom_vmap_p] = _custom_vmap_vmap

# ---- index rows ----------------------------------------------------------------------------------------------

without_row(
    "its rules are for all of its operands, so it is not taken apart",
    *(c.custom_jvp_p, c.custom_vjp_p, c.custom_linear_p, c.custom_vmap_p),
)
