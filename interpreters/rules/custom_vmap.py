"""Rules of custom_vmap: derivatives of a function with a vmap rule have vmap rules too.

The derivative of such a function has a rule too, the derivative of the rule, and so have both halves of one that is
unzipped and the transpose of the linear one. A half cannot hand the residuals of the rule over: how many examples there
will be, and whether, is not known yet. So the linear half is given the primal inputs besides the residuals, and of many
examples its rule begins again from these; of one, it is an ordinary program.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from tapeless.interpreters import jvp, partial_eval, transpose, vmap
from tapeless.interpreters.partial_eval import UnzipTrace
from tapeless.interpreters.zero import Zero, are_nonzero, instantiate, with_zeros, zero_of
from tapeless.tracer import dtypes, passes
from tapeless.tracer.flags import merge_lists, where_false, where_true
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.primitives import custom_vmap as c
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of

Flags = tuple[bool, ...]
Pairs = Sequence[tuple[Any, bool]]  # values, and whether they have the mapped axis, first


class _Pushed:
    """The rule of a derivative: arguments, then tangents of some of them -> results, tangents of some of these."""

    def __init__(self, rule: Any, n: int, some: Flags, some_out: Flags, of_consts: Sequence[Any]) -> None:
        self._rule, self._n, self._some, self._some_out, self._of_consts = rule, n, some, some_out, list(of_consts)
        self.tangents = sum(some_out)  # so many of the results, the last, are tangents
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
    """x, with the mapped axis first if it `was` so; and repeated if it is not but shall be `now`."""
    return vmap.materialized(x, None, size) if now and not was else x


def _custom_vmap_jvp(primals: Any, tangents: Any, *, rule: Any, jaxpr: Jaxpr, n_consts: int) -> Any:
    some = are_nonzero(tangents)
    inexact = tuple([aval.tangent().dtype != dtypes.float0 for aval in jaxpr.out_avals])
    program, outer, some_out = jvp.jvp_jaxpr(jaxpr, some, inexact)  # what is zero here may not be so in the rule
    of_consts = list(map(aval_of, where_true(some[:n_consts], primals[:n_consts])))
    pushed = _Pushed(rule, len(primals) - n_consts, some[n_consts:], some_out, of_consts)
    given = [*primals[n_consts:], *where_true(some, tangents)]
    results = c.custom_vmap(pushed, program, [*outer, *primals[:n_consts]], given)
    return with_zeros(results, some_out)


# ---- unzip and transpose ---------------------------------------------------------------------------------------


class _Part:
    """The rule of a part of a function: some of its arguments, in an order of their own -> some of its results.

    rule: that of the function. linear_in, linear_out: which of its inputs, the first `n_consts` of them constants, and
    which of its results are linear.
    """

    def __init__(self, rule: Any, linear_in: Flags, linear_out: Flags, n_consts: int) -> None:
        self.rule, self.linear_in, self.linear_out, self.n_consts = rule, linear_in, linear_out, n_consts
        self.primals = len(linear_in) - sum(linear_in)
        self.__name__: str = rule.__name__

    def whole(self, size: int, primals: Pairs, linear: Pairs) -> tuple[list[Any], list[bool]]:
        """The function's own rule, applied to values with whether they are mapped."""
        pairs = merge_lists(self.linear_in, linear, primals)
        _check_not_given(self.rule, [(x, 0 if m else None) for x, m in pairs[: self.n_consts]])
        given = pairs[self.n_consts :]
        return self.rule(size, [x for x, _ in given], [m for _, m in given])


class _PrimalRule(_Part):
    """The rule of the primal half: primal inputs -> primal results, residuals of the program of one example."""

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

        # As a program, without what it computes only of the zeros.
        program, consts = trace_to_jaxpr(outs, [aval_of(x) for x in args], what="vmap", function=self.rule)
        results = eval_jaxpr(passes.dead_code(program), [*consts, *args])
        dims = tuple([0 if yes else None for yes in mapped])
        kept = eval_jaxpr(vmap.batch_jaxpr(residuals, size, dims), args)
        return [*results, *kept], [*out_mapped, *[True] * len(kept)]


class _LinearRule(_Part):
    """The rule of the linear half: residuals, primal inputs, linear inputs -> linear results.

    Batched, it begins again from the primal inputs: only the function's own rule knows how.
    """

    linear = True

    def __call__(self, size: int, args: Sequence[Any], mapped: Sequence[bool]) -> tuple[list[Any], list[bool]]:
        pairs = list(zip(args, mapped))[len(args) - len(self.linear_in) :]
        outs, flags = self.whole(size, pairs[: self.primals], pairs[self.primals :])
        return where_true(self.linear_out, outs), where_true(self.linear_out, flags)


class _Transposed:
    """The rule of a transpose: residuals, primal inputs, cotangents of some results -> cotangents of all inputs."""

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
        # The rule may compute the value again, too, and in the same loop.
        halves = partial_eval.unzip_body(passes.dead_code(program), linear_in, linear_out=outs)
        pulled, _ = transpose.transpose_jaxpr(halves.linear, outs, wanted=every)
        given = [vmap.materialized(ct, 0 if m else None, size) for ct, m in cts]
        residuals = eval_jaxpr(halves.primal, [*consts, *fixed])
        return list(eval_jaxpr(pulled, [*residuals, *given])), [True] * len(avals)


def _custom_vmap_partial_eval(trace: UnzipTrace, args: Any, *, rule: Any, jaxpr: Jaxpr, n_consts: int) -> Any:
    """Split a function with a rule into a primal and a linear one, which takes all primal inputs too, for its rule."""
    linear_in = tuple(map(trace.is_linear, args))
    n_tangents = getattr(rule, "tangents", 0)  # one that is zero for one example may not be so in the rule
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
    """A function with a rule again, the transpose of the rule."""
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
            raise TypeError(
                f"custom_vmap: {rule.__name__} closes over a value that is mapped, {aval_of(x)}, axis {d}, which its "
                "rule is not given.\n  Pass it as an argument."
            )


jvp.rules[c.custom_vmap_p] = _custom_vmap_jvp
partial_eval.rules[c.custom_vmap_p] = _custom_vmap_partial_eval
transpose.rules[c.custom_vmap_p] = _custom_vmap_transpose
vmap.rules[c.custom_vmap_p] = _custom_vmap_vmap
