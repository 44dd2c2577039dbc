"""Parameters of a user's primitive, and keywords of a user's function, may have any name: none meets a name of ours."""

import ast
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.extend.core import Primitive
from tapeless.extend.interpreters import ad, batching, mlir, xla

X = np.array([1.0, 2.0, -0.5], np.float32)


@lru_cache
def names_of_ours() -> tuple[str, ...]:
    """Names of the parameters of all functions of ours that pass on keywords."""
    found: set[str] = {"jaxpr", "name", "self", "args", "params", "kwargs"}
    for folder in ("api", "tracer", "interpreters", "lowering"):
        for path in (Path(__file__).parents[3] / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (ast.FunctionDef, ast.Lambda)) and node.args.kwarg:
                    found |= {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    return tuple(sorted(found))


def tripled(linear: bool) -> Primitive:
    """3 x by a primitive with a rule for each transformation, all of which take params by any name."""
    p = Primitive("tripled")
    p.def_impl(lambda x, /, **params: 3 * tnp.asarray(x))
    p.def_abstract_eval(lambda x, /, **params: x)
    if linear:
        ad.deflinear(p, lambda ct, /, **params: [p.bind(ct, **params)])
    else:
        ad.defjvp(p, lambda t, x, /, **params: p.bind(t, **params))
        ad.primitive_transposes[p] = lambda ct, x, /, **params: [p.bind(ct, **params)]
    if linear:
        batching.defvectorized(p)
    else:
        batching.primitive_batchers[p] = lambda args, dims, /, **params: (p.bind(*args, **params), dims[0])
    mlir.register_lowering(p, mlir.lower_fun(lambda x, /, **params: 3 * x, multiple_results=False))
    return p


@pytest.mark.parametrize("linear", [True, False])
def test_params_of_a_primitive(linear: bool):
    """All names of ours at once, under every transformation."""
    p, params = tripled(linear), dict.fromkeys(names_of_ours(), "a")
    assert {"name", "primitive", "primals", "cts", "size", "trace", "jaxpr"} < set(params)

    def g(x):
        return p.bind(x, **params)

    def f(x):
        return g(x).sum()

    assert tl.make_jaxpr(g)(X).eqns[0].params == params
    for transform, want in {
        f: 7.5,
        tl.jit(f): 7.5,
        tl.grad(f): 3,
        tl.jit(tl.grad(f)): 3,
        tl.vmap(g): 3 * X,
        tl.jit(tl.vmap(tl.grad(g))): 3,
        tl.grad(tl.checkpoint(f)): 3,
        tl.jit(tl.grad(tl.checkpoint(f))): 3,
        (lambda x: tl.jvp(f, (x,), (x,))[1]): 7.5,
        (lambda x: tl.linearize(f, x)[1](x)): 7.5,
        (lambda x: tl.linear_transpose(g, x)(x)[0]): 3 * X,
        (lambda x: tl.lax.scan(lambda c, _: (c, g(c)), x, None, 2)[1][1]): 3 * X,
        tl.grad(lambda x: tl.lax.scan(lambda c, _: (g(c), None), x, None, 2)[0].sum()): 9,
        (lambda x: tl.experimental.jet.jet(g, (x,), ((x,),))[1][0]): 3 * X,
        (lambda x: tl.experimental.checkify.checkify(g)(x)[1]): 3 * X,
        tl.hessian(lambda x: f(x) ** 2): 18,
        (lambda x: xla.apply_primitive(p, x, **params)): 3 * X,
    }.items():
        np.testing.assert_allclose(transform(X), np.broadcast_to(want, np.shape(transform(X))), rtol=1e-6)
    tl.cost(f, X), tl.saved_residuals(f, X), tl.linearize(f, X)


def test_keywords_of_a_function():
    """What transformations return, and what reads programs, pass on keywords by any name."""

    def f(x, /, **weights):
        return (x * sum(weights.values())).sum()

    weights = dict.fromkeys(names_of_ours(), 2.0)
    value, slope = 2.5 * 2 * len(weights), np.full(3, 2.0 * len(weights))
    for transform, want in {
        tl.jit: value,
        tl.checkpoint: value,
        tl.named_call: value,
        tl.grad: slope,
        tl.jacrev: slope,
        tl.jacfwd: slope,
        tl.value_and_grad: (value, slope),
        tl.experimental.checkify.checkify: (value,),
    }.items():
        found = tl.tree.leaves(transform(f)(X, **weights))
        for y, expected in zip(
            found[-len(want) :] if isinstance(want, tuple) else found, tl.tree.leaves(want), strict=True
        ):
            np.testing.assert_allclose(y, expected, rtol=1e-6)
    for read in (tl.make_jaxpr(f), tl.jit(f).trace, tl.jit(f).lower, tl.jit(f).eval_shape):
        read(X, **weights)
    for read in (tl.eval_shape, tl.cost, tl.saved_residuals):
        read(f, X, **weights)
