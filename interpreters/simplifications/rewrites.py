"""The table of rewrites of single equations: for each primitive, the rows that are tried in this order.

Search terms: peephole optimisation, algebraic simplification, constant folding.
Signs of zeros count: x + 0.0 is x for all x but -0.0, so only -0.0 is neutral. In linear programs both zeros are, since
the sign of a zero tangent has no meaning, and a factor that is known to be 0 makes the product 0 for any tangent.
docs/rewrites.md shows every row with an example. matchers.py defines the notation and compiles it. The functions that
rows name are in replacements.py and fusion/affine_indexing.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tapeless.interpreters import writer
from tapeless.interpreters.simplifications import replacements
from tapeless.interpreters.simplifications.fusion import affine_indexing
from tapeless.interpreters.simplifications.matchers import Licence, Rewrite, Rewrites
from tapeless.tracer.core import Primitive
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.contraction import dot_general_p
from tapeless.tracer.primitives.operands import argsort, without
from tapeless.tracer.primitives.reduction import reduce_sum_p

FLOATS, INTEGERS, LINEAR = Licence.FLOATS, Licence.INTEGERS, Licence.LINEAR

REWRITES: Mapping[Primitive, Sequence[Rewrite]] = {
    e.mul_p: [
        Rewrite("x * 1 -> x", "1 is neutral"),
        Rewrite("m * n -> product(m, n)", "numbers are multiplied now"),
        Rewrite("select_n(p, *x) * n -> products_of_cases(p, x, n)", "numbers in all cases are multiplied now"),
        Rewrite("ẋ * 0 -> 0", "a zero that the program shows drops the tangent", LINEAR),
    ],
    e.div_p: [Rewrite("x / 1 -> x", "1 is neutral")],
    e.add_p: [
        Rewrite("x + -0.0 -> x", "neutral for both zeros, as 0.0 is not: -0.0 + 0.0 is 0.0", FLOATS),
        Rewrite("x + 0 -> x", "0 is neutral", INTEGERS),
        Rewrite("x + 0 -> x", "a zero has no sign", LINEAR),
        Rewrite(
            "select_n(p, *x) + select_n(p, *y) -> sums_of_cases(p, x, y)", "numbers in the same cases are added now"
        ),
    ],
    e.sub_p: [
        Rewrite("x - 0.0 -> x", "neutral for both zeros, as -0.0 is not: -0.0 - -0.0 is 0.0", FLOATS),
        Rewrite("x - 0 -> x", "0 is neutral", INTEGERS),
        Rewrite("x - 0 -> x", "a zero has no sign", LINEAR),
    ],
    e.neg_p: [
        Rewrite("-n -> negative(n)", "numbers are negated now"),
        Rewrite("-(-x) -> x", "signs cancel"),
    ],
    e.eq_p: [Rewrite("eq(m, n) -> equality(m, n)", "numbers are compared now")],
    e.integer_pow_p: [Rewrite("integer_pow[1](x) -> x", "a power of 1")],
    e.convert_element_type_p: [
        Rewrite("convert_element_type[d, k](x) -> x if has_type(x, d, k)", "it has the type already"),
        Rewrite("convert_element_type[d, k](n) -> in_dtype(n)", "numbers that both dtypes have are converted now"),
        Rewrite(
            "convert_element_type[d, k](convert_element_type(x)) -> convert_element_type[d, k](x) if is_boolean(x)",
            "all dtypes have 0 and 1",
        ),
    ],
    e.select_n_p: [
        Rewrite("select_n(p, *x) -> only_case(x)", "all cases are one value, or equal numbers"),
        Rewrite("select_n(p, *x) -> no_case(x)", "all cases are zeros, which have no sign", LINEAR),
        Rewrite("select_n(p, *x) -> parts_of_cases(p, x)", "cases of ranges of indices stand side by side"),
    ],
    s.iota_p: [Rewrite("iota[t, s, d]() -> 0 if s[d] == 1", "the only index is 0")],
    s.broadcast_in_dim_p: [
        Rewrite("broadcast_in_dim[s, d](x) -> x if shape(x) == s", "nothing is repeated"),
        Rewrite(
            "broadcast_in_dim[s, d](broadcast_in_dim[t, e](x)) -> broadcast_in_dim[s, picked(d, e)](x)"
            " if not stretches(t, s, d)",
            "repeated along some axes and along others is repeated along all of them",
        ),
        Rewrite(
            "broadcast_in_dim[s, d](reshape[t](x)) -> broadcast_in_dim[s, of_long(d, t)](x)"
            " if 1 not in shape(x) and same_but_ones(t, shape(x))",
            "axes of length 1 are repeated like others that are not there",
        ),
    ],
    s.reshape_p: [
        Rewrite("reshape[s](x) -> x if shape(x) == s", "it has the shape already"),
        Rewrite("reshape[s](reshape(x)) -> reshape[s](x)", "the last shape counts"),
        Rewrite("reshape[s](broadcast_in_dim(x)) -> broadcast_in_dim[s, ()](x) if not shape(x)", "all are one scalar"),
        Rewrite(
            "reshape[s](broadcast_in_dim[t, d](x)) -> broadcast_in_dim[s, regrouped(d, t, s)](x)"
            " if 1 not in shape(x) and same_but_ones(t, s)",
            "axes of length 1 are repeated like others",
        ),
    ],
    s.transpose_p: [
        Rewrite("transpose[p](x) -> x if is_ordered(p)", "nothing moves"),
        Rewrite("transpose[p](transpose[q](x)) -> transpose[picked(q, p)](x)", "two permutations are one"),
        Rewrite(
            "transpose[p](broadcast_in_dim[s, d](x)) ->"
            " broadcast_in_dim[picked(s, p), ordered(places(p, d))](transpose[argsort(places(p, d))](x))",
            "what is repeated is moved before",
        ),
    ],
    s.rev_p: [
        Rewrite("rev[d](x) -> x if are_ones(picked(shape(x), d))", "of one element nothing moves"),
        Rewrite("rev[d](rev[e](x)) -> rev[once(d, e)](x)", "twice along an axis is not at all"),
    ],
    s.concatenate_p: [Rewrite("concatenate(x) -> x", "there is nothing to join")],
    s.pad_p: [
        Rewrite("pad[c](x, v) -> x if pads_nothing(c)", "nothing is added"),
        Rewrite(
            "pad[c](x, v) -> slice[cut_before(c), cut_after(shape(x), c), (1,) * len(c)](x) if only_cuts(c)",
            "it only cuts off",
        ),
        Rewrite(
            "pad[c](pad[d](x, u), v) -> pad[added(c, d)](x, v) if same_number(u, v) and are_around(c, d)",
            "the same around what is around",
        ),
    ],
    s.slice_p: [
        Rewrite("slice[a, b, c](x) -> x if sizes(a, b, c) == shape(x)", "it is all"),
        Rewrite(
            "slice[a, b, c](slice[i, j, k](x)) -> slice[starts_in(a, i, k),"
            " limits_in(starts_in(a, i, k), times(c, k), sizes(a, b, c)), times(c, k)](x) if all(sizes(a, b, c))",
            "a part of a part is a part",
        ),
    ],
    s.split_p: [Rewrite("split[n, d](x) -> x if len(n) == 1", "it is all")],
    reduce_sum_p: [
        Rewrite("reduce_sum[d](x) -> x if not d", "along no axis"),
        Rewrite(
            "reduce_sum[d](x) -> reshape[without(shape(x), d)](x) if are_ones(picked(shape(x), d))",
            "sums of one element",
        ),
        Rewrite(
            "reduce_sum[d](broadcast_in_dim[s, e](x)) -> sum_of_repeated(x, s, e, d)",
            "n times what is repeated n times, where the dtype has n",
        ),
        Rewrite("reduce_sum[d](reduce_sum[e](x)) -> reduce_sum[together(d, e, x)](x)", "two sums are one"),
    ],
    i.dynamic_slice_p: [Rewrite("dynamic_slice(x, *i) -> known_slice(x, i)", "it is known where the window begins")],
    i.dynamic_update_slice_p: [
        Rewrite("dynamic_update_slice(x, y, *i) -> y if same_type(x, y)", "all is replaced"),
    ],
    dot_general_p: [
        Rewrite("dot_general(ẋ, 0) -> 0", "a zero that the program shows drops the tangent", LINEAR),
        Rewrite("dot_general(0, ẋ) -> 0", "a zero that the program shows drops the tangent", LINEAR),
        Rewrite(
            "dot_general[c, p, t](x, y) -> elementwise_product(x, y, c) if not contracts(x, y, c)", "nothing is summed"
        ),
        Rewrite(
            "dot_general[c, p, t](x, y) -> outer_with_number(x, y, c) if not summed(c)",
            "nothing is summed, and a factor is a number",
        ),
    ],
}
# For the documentation: `replacements.before_broadcasts`, which is tried after the rows of each elementwise primitive.
BROADCASTS = Rewrite(
    "f(broadcast_in_dim[s, d](x), ..) -> broadcast_in_dim[s, d](f(x, ..))",
    "what is repeated alike is combined before; a scalar that is repeated stays a scalar",
)


def _names() -> dict[str, Any]:
    """Return the functions that rows may call, by name."""
    modules = affine_indexing, replacements
    own = [f for module in modules for f in vars(module).values() if getattr(f, "__module__", "") == module.__name__]
    return {f.__name__: f for f in [*own, argsort, without]}


def _fill() -> None:
    """Register rules for the primitives with rows and the elementwise ones, except copy: its result is a new buffer."""
    names = _names()
    of_elements = [p for p in replacements.operations if p is not e.copy_p]
    for primitive in dict.fromkeys([*REWRITES, *of_elements]):
        after = replacements.before_broadcasts if primitive in of_elements else None
        rule = Rewrites(primitive, REWRITES.get(primitive, ()), names, after)
        writer.rules[primitive] = writer.Simplification(rule, rule.looks_at())


_fill()
