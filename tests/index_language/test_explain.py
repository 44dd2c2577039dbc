"""Explanations of functions of the index language."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix


def convolved(x, g):
    n, m = x.shape[0] - g.shape[0] + 1, g.shape[0]
    return ix.build(n, lambda i: ix.sum(m, lambda j: g[j] * x[i + j]))


EXPECTED = """convolved

BODY, for d < 3
{ lambda a:f32[3] b:i32[] c:f32[6] d:i32[]. let
    e:f32[] = ein[e[] += a[clip(d, 0, 2)]] a d
    f:f32[] = ein[f[] += c[clip(b, 0, 3) + clip(d, 0, 2)]] c b d
    g:f32[] = mul e f
  in g }

BODY, for c < 4
{ lambda a:f32[3] b:f32[6] c:i32[]. let
    d:f32[3] = ein[d[i] += a[i]] a
    e:f32[3] = ein[e[i] += b[i + clip(c, 0, 3)]] b c
    f:f32[3] = mul d e
    g:f32[] = reduce_sum[axes=(0,)] f
  in g }

TENSOR SSA: work 20
{ lambda a:f32[6] b:f32[3]. let
    c:f32[4] = ein[c[i] += Σ j. a[i + j] b[j]] a b
  in c }
"""


def test_steps():
    explained = ix.explain(convolved, ix.Space("x", (6,)), tnp.ones(3))
    assert str(explained).startswith(EXPECTED)
    assert [body.sizes for body in explained.bodies] == [(3,), (4,)]
    assert explained.cost == (20, 44, 39)
    (term,), _, (in_g, in_x) = explained.lowered
    assert term.text == "c[i] += Σ j. a[i + j] b[j]"
    assert term.operations[-1] == "dot_general" and term.work == 4 * (2 * 3 - 1)
    assert sorted([in_g.work, in_x.work]) == [2 * 12 - 6, 3 * (2 * 4 - 1)]


def test_what_has_no_derivative():
    explained = ix.explain(lambda x: ix.build(3, lambda i: x[i] + 1), np.arange(3, dtype=np.int32))
    assert explained.linear is explained.transposed is None
    assert explained.cost == (3, 0, 0)


def test_it_can_be_called_again():
    """Bodies are found however often the function was traced."""
    for _ in range(2):
        assert len(ix.explain(convolved, tnp.ones(6), tnp.ones(3)).bodies) == 2
    assert str(tl.make_jaxpr(convolved)(tnp.ones(6), tnp.ones(3)))
    with pytest.raises(TypeError, match=r"index\.explain"):
        ix.explain(3)


def test_in_a_notebook():
    explained = ix.explain(lambda x: ix.build(2, lambda i: x[i] * (i < 1)), tnp.ones(2))
    assert "BODY, for" in explained._repr_html_()
    assert explained._repr_html_().startswith("<pre>") and " < 2" not in explained._repr_html_()
