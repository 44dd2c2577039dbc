"""Primitives of ours under JAX's names: keys of tables, operations that `bind` applies, with rules that can be read."""

import inspect

import numpy as np
import pytest

import tapeless as tl
from tapeless import lax
from tapeless.extend.core import primitives
from tapeless.extend.interpreters import ad
from tapeless.like_jax.own_primitives import OWN

X = np.arange(6.0).reshape(2, 3) + 1

# What JAX passes to `bind`, and the function that says what comes of it.
BOUND = {
    "add_p": ((X, X), {}, X + X),
    "mul_p": ((X, X), {"out_dtype": None}, X * X),
    "sin_p": ((X,), {"accuracy": None}, np.sin(X)),
    "conj_p": ((X + 1j,), {"input_dtype": np.complex128}, X - 1j),
    "integer_pow_p": ((X,), {"y": 3}, X**3),
    "argmax_p": ((X,), {"axes": (1,), "index_dtype": np.int32}, np.full(2, 2, np.int32)),
    "broadcast_in_dim_p": (
        (X,),
        {"shape": (1, 2, 3), "broadcast_dimensions": (1, 2), "sharding": None},
        X[None],
    ),
    "convert_element_type_p": (
        (X,),
        {"new_dtype": np.dtype(np.int32), "weak_type": False, "sharding": None},
        X.astype(np.int32),
    ),
    "bitcast_convert_type_p": ((X,), {"new_dtype": np.dtype(np.int64)}, X.view(np.int64)),
    "dot_general_p": (
        (X, X),
        {
            "dimension_numbers": (((1,), (1,)), ((), ())),
            "precision": None,
            "preferred_element_type": None,
            "out_sharding": None,
        },
        X @ X.T,
    ),
    "reduce_sum_p": ((X,), {"axes": (0,), "out_sharding": None}, X.sum(0)),
    "reduce_max_p": ((X,), {"axes": (0,)}, X.max(0)),
    "reshape_p": ((X,), {"new_sizes": (6,), "dimensions": None, "sharding": None}, X.ravel()),
    "slice_p": ((X,), {"start_indices": (0, 1), "limit_indices": (2, 3), "strides": None}, X[:, 1:]),
    "iota_p": ((), {"dtype": np.dtype(np.int32), "shape": (3,), "dimension": 0, "sharding": None}, np.arange(3)),
    "transpose_p": ((X,), {"permutation": (1, 0)}, X.T),
    "regularized_incomplete_beta_p": ((X, X, X / 10), {}, np.asarray(lax.betainc(X, X, X / 10))),
}


@pytest.mark.parametrize("name", BOUND)
def test_bind_takes_jaxs_parameters(name):
    args, params, wanted = BOUND[name]
    found = getattr(lax, name).bind(*args, **params)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_bind_gives_lists_of_several_results():
    assert [np.asarray(x).tolist() for x in lax.sort_p.bind(X[::-1], dimension=0, is_stable=True, num_keys=1)] == [
        X.tolist()
    ]
    q, r = lax.linalg.qr_p.bind(X, pivoting=False, full_matrices=False, use_magma=None)
    np.testing.assert_allclose(q @ r, X, rtol=1e-12)


def test_parameters_without_meaning_here():
    with pytest.raises(NotImplementedError, match=r"bind: accuracy=1 has no meaning here, only None\."):
        lax.sin_p.bind(X, accuracy=1)
    with pytest.raises(NotImplementedError, match="bind: conjugate_a=True has no meaning here"):
        lax.linalg.triangular_solve_p.bind(X, X, conjugate_a=True)


@pytest.mark.parametrize("name", sorted(OWN))
def test_they_are_the_primitives_of_equations(name):
    """As keys of a table, and as they compare; by one name everywhere."""
    primitive = OWN[name]
    assert {primitive: 1}[primitive.operation] == 1 and primitive == primitive.operation
    assert getattr(lax, name, None) is primitive or getattr(lax.linalg, name) is primitive
    assert getattr(primitives, name) is primitive
    assert inspect.getattr_static(primitive, "operation") in tl.tracer.core.all_primitives()


def test_a_table_of_rules_by_primitive():
    """An interpreter of a library's own: inverses of what is computed."""
    inverses = {lax.exp_p: lax.log, lax.tanh_p: lax.atanh, lax.neg_p: lax.neg}
    jaxpr = tl.make_jaxpr(lambda x: lax.exp(-lax.tanh(x)))(1.0).jaxpr
    x = np.float64(0.3)
    y = lax.exp(-lax.tanh(x))
    for eqn in reversed(jaxpr.eqns):
        y = inverses[eqn.primitive](y)
    np.testing.assert_allclose(y, x, rtol=1e-6)


def test_rules_are_read_and_not_changed():
    value, tangent = ad.primitive_jvps[lax.sin_p]([X], [2 * X], accuracy=None)
    np.testing.assert_allclose(value, np.sin(X))
    np.testing.assert_allclose(tangent, 2 * X * np.cos(X))
    (values,), (tangents,) = ad.primitive_jvps[lax.sort_p]([X[0]], [X[1]], dimension=0, is_stable=True, num_keys=1)
    np.testing.assert_array_equal([values, tangents], X)
    assert lax.add_p in ad.primitive_jvps
    with pytest.raises(TypeError, match="sin is a primitive of Tapeless"):
        ad.primitive_jvps[lax.sin_p] = lambda primals, tangents: None


def test_names_that_are_not_there():
    for name in ("pbroadcast_p", "svd_p", "rng_uniform_p"):
        with pytest.raises(AttributeError, match=name):
            getattr(lax, name)


def test_they_are_jaxs():
    """By name, and whether they give several results."""
    jax = pytest.importorskip("jax")
    for name, primitive in OWN.items():
        theirs = getattr(jax.lax if hasattr(lax, name) else jax.lax.linalg, name)
        assert theirs.multiple_results == primitive.multiple_results, name
