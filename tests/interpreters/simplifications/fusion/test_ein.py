"""The simplifier and `ein`: written into its readers, read in parts; the same values, and fewer operations."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
from tapeless.interpreters.simplify import simplify_program
from tapeless.tracer.primitives.ein import ein
from tapeless.tracer.terms.affine import Affine, variables
from tapeless.tracer.terms.term import Lookup, Read, Term, term
from tests.tracer.terms.random_terms import OUT, SHAPES, looped, operands, terms

i, j, k = variables((0, 0, 0))
N = 8
A, V = np.arange(64.0).reshape(N, N), np.arange(8.0)
PRODUCT = term((i, j), (N, N, N), [Read(0, (i, k)), Read(1, (k, j))])
APPLIED = term((i,), (N, N), [Read(0, (i, j)), Read(1, (j,))])


def equations(f: Any, *args: Any) -> list[str]:
    """The equations of a simplified program, without the type of the result."""
    program = simplify_program(tl.make_jaxpr(f)(*args).jaxpr)
    return [line.strip().partition(" = ")[2] for line in str(program).splitlines()[1:-1]]


def test_an_ein_of_an_ein_is_one():
    def f(a: Any, b: Any, v: Any) -> Any:
        return ein([ein([a, b], [PRODUCT], (N, N)), v], [APPLIED], (N,))

    assert equations(f, A, A, V) == ["ein[d[i] += Σ j k. c[j] a[i,k] b[k,j]] c a b"]
    np.testing.assert_array_equal(tl.jit(f)(A, A, V), A @ (A @ V))


def test_what_operations_read_is_written_into_them():
    """A diagonal matrix is not multiplied out; a mask of data stays a bracket."""
    diagonal = term((i, i), (N,), [Read(0, (i,))])
    masked = term((i, j), (N, N), [Read(0, (i,)), Read(1, (j,))], [Lookup(Affine(1), 2, (i,))])
    assert equations(lambda v, a: ein([v], [diagonal], (N, N)) @ a, V, A) == ["ein[c[i,j] += b[i,j] a[i]] b a"]
    found = equations(lambda v, m, w: ein([v, v, m], [masked], (N, N)) @ w, V, V > 2, V)
    assert found == ["ein[d[i] += Σ j. [1 = b[i]] c[j] a[i] a[j]] c a b"]


def test_parts_are_made_of_parts():
    def f(a: Any, b: Any) -> Any:
        return ein([a, b], [PRODUCT], (N, N))[2:4, 0]

    found = equations(f, A, A)
    assert found[:2] == [
        "slice[start_indices=(2, 0) limit_indices=(4, 8) strides=(1, 1)] a",
        "slice[start_indices=(0, 0) limit_indices=(8, 1) strides=(1, 1)] b",
    ]
    np.testing.assert_array_equal(tl.jit(f)(A, A), (A @ A)[2:4, 0])


@settings(deadline=None, max_examples=8)
@given(st.lists(terms(), min_size=1, max_size=2), st.lists(terms(shapes=(OUT, *SHAPES[1:])), min_size=1, max_size=2),
       st.integers(0, 99), st.tuples(st.integers(0, 3), st.integers(0, 2)))  # fmt: skip
def test_random_terms(inner: list[Term], outer: list[Term], seed: int, at: tuple[int, int]):
    """Parts of terms of terms, and the gradient of those, against the same step by step."""
    x = operands(seed)

    def whole(*x: Any) -> Any:
        return ein([ein(x, inner, OUT), *x[1:]], outer, OUT)

    def parts(*x: Any) -> Any:
        y = whole(*x)
        return y[at[0] :, at[1] :: 2], y[at]

    wanted = looped(tuple(outer), [looped(tuple(inner), x), *x[1:]])
    for found, part in zip(tl.jit(parts)(*x), (wanted[at[0] :, at[1] :: 2], wanted[at])):
        np.testing.assert_array_equal(found, part)

    def loss(*x: Any) -> Any:
        return (parts(*x)[0] ** 2).sum()

    for found, step_by_step in zip(tl.jit(tl.grad(loss, (0, 1)))(*x), tl.grad(loss, (0, 1))(*x)):
        np.testing.assert_allclose(found, step_by_step, rtol=1e-12, atol=1e-9)
