"""Terms as text."""

from tapeless.tracer.terms.affine import Affine, symbol, variables
from tapeless.tracer.terms.term import IsZero, Lookup, NotNegative, Read, Use, term
from tapeless.tracer.terms.term_printing import term_text

i, j, k = variables((0, 0, 0))


def test_a_contraction():
    t = term((i, j), (2, 3, 4), [Read(0, (i, k)), Read(1, (k, j))])
    assert term_text(t, "c") == "c[i,j] += Σ k. a[i,k] b[k,j]"
    assert term_text(t, "y", ["left", "right"]) == "y[i,j] += Σ k. left[i,k] right[k,j]"


def test_brackets():
    brackets = [IsZero(j - i - 2), NotNegative(i - j + k - 1), Lookup(Affine(1), 1, (i,)), Lookup(k, 2, (i,), (0, 3))]
    t = term((i, j), (4, 4, 4), [Read(0, (i, j))], brackets)
    assert term_text(t) == ("out[i,j] += Σ k. [i + 2 = j] [i + k >= j + 1] [1 = b[i]] [k = clip(c[i], 0, 3)] a[i,j]")


def test_positions_that_are_known_to_be_within_limits():
    t = term((i,), (4, 4), [Read(0, (j,))], [Lookup(j, 1, (i,), (0, 3), True)])
    assert term_text(t) == "out[i] += Σ j. [j = within(b[i], 0, 3)] a[j]"


def test_indices():
    t = term((5 * i + j,), (2, 5), [Read(0, (3 - i, symbol(1, 0, 4) - 2 * j)), Read(2, ())], coefficient=-2)
    assert term_text(t) == "out[5i + j] += -2 a[3 - i,clip(b, 0, 4) - 2j] c"


def test_quotients_and_conjugates():
    t = term((), (4,), [Read(0, (i,), Use.DIVIDED), Read(1, (i,), Use.CONJUGATED)])
    assert term_text(t) == "out[] += Σ i. conj(b[i]) / a[i]"
    assert term_text(term((), (), [], [])) == "out[] += 1"


def test_names_that_run_out():
    axes = variables((2,) * 14)
    assert term_text(term(axes, (2,) * 14, [Read(30, ())])) == "out[i,j,k,l,m,n,p,q,r,u,v,w,i1,j1] += e1"
