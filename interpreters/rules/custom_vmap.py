"""Rules of custom_vmap: derivatives of a function with a vmap rule have vmap rules too.

The vmap rule of the jvp of such a function is the jvp of its vmap rule. Both halves of an unzipped function, and the
transpose of its linear half, get vmap rules likewise. The primal half cannot save the residuals of the user's rule: it
is not known yet whether there will be a vmap, and of what size. So the linear half takes the primal inputs besides the
residuals, and its vmap rule starts again from these inputs. Without vmap it is an ordinary program of its residuals.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from tapeless.interpreters import jvp, partial_eval, transpose, vmap
from tapeless.interpreters.index_rows import without_row
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.zero import Zero, are_nonzero, instantiate, with_zeros, zero_of
from tapeless.tracer import dtypes, passes
from tapeless.tracer.flags import Flags, merge_lists, where_false, where_true
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import custom_vmap as c
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of

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
    return vmap.materialized(x, None, size) if now and not was else x


def _custom_vmap_jvp(primals: Any, tangents: Any, *, rule: Any, jaxpr: Jaxpr, n_consts: int) -> Any:
    some = are_nonzero(tangents)
    inexact = tuple([aval.tangent().dtype != dtypes.float0 for aval in jaxpr.out_avals])
    program, outer, some_out = jvp.jvp_jaxpr(jaxpr, some, inexact)  # zero tangents may be nonzero in the user's rule
    of_consts = list(map(aval_of, where_true(some[:n_consts], primals[:n_consts])))
    pushed = _Pushed(rule, len(primals) - n_consts, some[n_consts:], some_out, of_consts)
    given = [*primals[n_consts:], *where_true(some, tangents)]
    results = c.custom_vmap(pushed, program, [*outer, *primals[:n_consts]], given)
    return with_zeros(results, some_out)


# ---- unzip and transpose ---------------------------------------------------------------------------------------


class _Part:
    """The base of vmap rules of a half of a function, which the function's own vmap rule `rule` computes.

    linear_in, linear_out: flags of the function's linear inputs, of which the first `n_consts` are constants, and of
    its linear results.
    """

    def __init__(self, rule: Any, linear_in: Flags, linear_out: Flags, n_consts: int) -> None:
        self.rule, self.linear_in, self.linear_out, self.n_consts = rule, linear_in, linear_out, n_consts
        self.primals = len(linear_in) - sum(linear_in)
        self.__name__: str = rule.__name__

    def whole(self, size: int, primals: Pairs, linear: Pairs) -> tuple[list[Any], list[bool]]:
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
        residuals = passes.rearranged(self._jaxpr, range(len(args)), range(n, len(self._jaxpr.outvars)))

        def outs(*xs: Any) -> list[Any]:
            zeros = [(instantiate(Zero(aval)), False) for aval in self._linear_avals]
            results, flags = self.whole(size, list(zip(xs, mapped)), zeros)
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
        outs, flags = self.whole(size, pairs[: self.primals], pairs[self.primals :])
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
            return [vmap.materialized(y, 0 if m else None, size) for y, m in pairs]

        avals = [aval.update(shape=(size, *aval.shape)) for aval in self._linear_avals]
        program, consts = trace_to_jaxpr(pushed, [*map(aval_of, fixed), *avals], what="vmap", function=self._rule)
        linear_in = (*[False] * (len(consts) + n), *[True] * len(avals))
        every, outs = (True,) * len(avals), (True,) * len(program.outvars)
        # Unzipped, as the rule may compute primal values again, and in the same loop.
        halves = partial_eval.unzip_body(passes.dead_code(program), linear_in, linear_out=outs)
        pulled, _ = transpose.transpose_jaxpr(halves.linear, outs, wanted=every)
        given = [vmap.materialized(ct, 0 if m else None, size) for ct, m in cts]
        residuals = eval_jaxpr(halves.primal, [*consts, *fixed])
        return list(eval_jaxpr(pulled, [*residuals, *given])), [True] * len(avals)


def _custom_vmap_partial_eval(trace: UnzipTrace, args: Any, *, rule: Any, jaxpr: Jaxpr, n_consts: int) -> Any:
    """Split a custom_vmap function into a primal and a linear one; for its rule, the latter takes primal inputs too."""
    linear_in = tuple(map(trace.is_linear, args))
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
    program = passes.rearranged(
        halves.linear,
        [*residuals, *unused, *range(halves.residuals, len(halves.linear.invars))],
        range(len(halves.linear.outvars)),
    )
    params = {"rule": _LinearRule(rule, linear_in, halves.linear_out, n_consts), "jaxpr": program, "n_consts": 0}
    linear = trace.record(c.custom_vmap_p, [*outs[n:], *primals, *tangents], params)
    return merge_lists(halves.linear_out, linear, outs[:n])


def _custom_vmap_transpose(cts: Any, *args: Any, rule: Any, jaxpr: Jaxpr, n_consts: int) -> Any:
    """Transpose a linear custom_vmap function: a custom_vmap function whose rule is the transpose of the rule."""
    nonzero, linear_in = are_nonzero(cts), tuple(map(transpose.is_linear, args))
    if not isinstance(rule, _LinearRule):  # a user's, whose arguments have another order
        rule = _LinearRule(rule, linear_in, (True,) * len(cts), n_consts)
    avals = [x.aval for x in where_true(linear_in, args)]
    program = transpose.transpose_jaxpr(jaxpr, nonzero, wanted=(True,) * len(avals))[0]
    given = [*where_false(linear_in, args), *where_true(nonzero, cts)]
    pulled = c.custom_vmap(_Transposed(rule, nonzero, avals), program, [], given)
    return merge_lists(linear_in, pulled, repeat(None))


# ---- vmap ------------------------------------------------------------------------------------------------------


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

without_row("its rules are for all of its operands, so it is not taken apart", c.custom_vmap_p)
