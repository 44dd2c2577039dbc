"""Functions by the names of JAX's primitives: `bind` takes JAX's parameters, and gives JAX's results."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.extend.interpreters import ad
from tapeless.like_jax.function_primitives import FUNCTIONS

X = np.arange(6.0).reshape(2, 3)
S = X[:, :2] + X[:, :2].T
WINDOW = {"window_dimensions": (1, 2), "window_strides": (1, 1), "padding": ((0, 0), (0, 0))}
DILATED = WINDOW | {"base_dilation": (1, 1), "window_dilation": (1, 1)}
ROWS = {
    "approx_top_k_p": (
        (X,),
        {
            "k": 1,
            "reduction_dimension": 1,
            "recall_target": 0.95,
            "is_max_k": False,
            "reduction_input_size_override": -1,
            "aggregate_to_topk": True,
        },
        [X[:, :1], np.zeros((2, 1))],
    ),
    "mulhi_p": ((np.int32([2**20]), np.int32([2**20])), {}, [2**8]),
    "reduce_p": (
        (X, 0.0),
        {"computation": None, "jaxpr": tl.make_jaxpr(lambda x, y: x + y)(0.0, 0.0), "dimensions": (0,)},
        [X.sum(0)],
    ),
    "reduce_window_p": (
        (X, 0.0),
        {"jaxpr": tl.make_jaxpr(lambda x, y: x + y)(0.0, 0.0).jaxpr, "consts": (), **DILATED},
        [X[:, :-1] + X[:, 1:]],
    ),
    "reduce_window_max_p": ((X,), DILATED, X[:, 1:]),
    "select_and_gather_add_p": ((10 * X, X), {"select_prim": lax.ge_p, **DILATED}, 10 * X[:, 1:]),
    "select_and_scatter_add_p": (
        (np.ones((2, 2)), X),
        {"select_prim": lax.le_p, **WINDOW},
        np.array([[1.0, 1, 0]] * 2),
    ),
    "scatter_sub_p": (
        (X, np.array([[1]]), np.ones((1, 3))),
        {
            "update_jaxpr": None,
            "update_consts": (),
            "dimension_numbers": lax.ScatterDimensionNumbers((1,), (0,), (0,)),
            "indices_are_sorted": False,
            "unique_indices": False,
            "mode": lax.GatherScatterMode.FILL_OR_DROP,
        },
        X - [[0], [1]],
    ),
    "squeeze_p": ((X[None],), {"dimensions": (0,)}, X),
    "stack_p": ((X, X), {"axis": 1}, np.stack([X, X], 1)),
    "stage_p": ((2.0,), {}, 2.0),
    "tile_p": ((X,), {"reps": (2, 1)}, np.tile(X, (2, 1))),
    "top_k_p": ((X,), {"k": 1, "axis": 0}, [X[1:], np.ones((1, 3))]),
    "unstack_p": ((X,), {"axis": 0}, list(X)),
    "linalg.lu_pivots_to_permutation_p": ((np.int32([1, 1]),), {"permutation_size": 3}, [1, 0, 2]),
    "linalg.symmetric_product_p": ((X, S), {"alpha": 2.0, "beta": 1.0}, 2 * X @ X.T + S),
}


@pytest.mark.parametrize("name", ROWS)
def test_bind_takes_jaxs_parameters(name):
    args, params, wanted = ROWS[name]
    primitive = getattr(lax.linalg if name.startswith("linalg.") else lax, name.removeprefix("linalg."))
    found = primitive.bind(*args, **params)
    assert isinstance(found, list) == primitive.multiple_results
    for y, want in zip(found, wanted, strict=True) if isinstance(found, list) else [(found, wanted)]:
        np.testing.assert_allclose(y, want, rtol=1e-12)


def test_factorizations_in_jaxs_order():
    v, w = lax.linalg.eigh_p.bind(S, lower=True, sort_eigenvalues=True, subset_by_index=None, algorithm=None)
    np.testing.assert_allclose(S @ v, v * w, atol=1e-12)
    s, u, vh = lax.linalg.svd_p.bind(X, full_matrices=False, compute_uv=True, subset_by_index=None, algorithm=None)
    np.testing.assert_allclose(u * s @ vh, X, atol=1e-12)
    (s,) = lax.linalg.svd_p.bind(X, full_matrices=False, compute_uv=False, subset_by_index=None, algorithm=None)
    np.testing.assert_allclose(s, np.linalg.svd(X)[1])
    options = {"compute_left_eigenvectors": False, "compute_right_eigenvectors": True, "enable_eigvec_derivs": False}
    w, v = lax.linalg.eig_p.bind(S, implementation=None, **options)
    np.testing.assert_allclose(S @ v, v * w, atol=1e-12)


def test_reflections():
    taus, a = np.array([0.5, 0.25]), np.tril(np.arange(6.0).reshape(3, 2), -1)
    q = lax.linalg.householder_product_p.bind(a, taus)
    np.testing.assert_allclose(lax.linalg.ormqr_p.bind(a, taus, np.eye(3), left=True, transpose=False)[:, :2], q)
    r = np.linalg.cholesky(np.eye(2) * 4).T
    updated = lax.linalg.cholesky_update_p.bind(r, np.ones(2))
    np.testing.assert_allclose(updated.T @ updated, r.T @ r + np.ones((2, 2)), rtol=1e-6)


def test_across_examples():
    def f(x):
        return [
            lax.psum_p.bind(x, axes=("i",), axis_index_groups=None),
            lax.pmax_p.bind(x, axes=("i",), axis_index_groups=None),
            lax.pmin_p.bind(x, axes=("i",), axis_index_groups=None),
            lax.ppermute_p.bind(x, axis_name=("i",), perm=((0, 1),)),
            lax.all_gather_p.bind(
                x, all_gather_dimension=0, axis_name=("i",), axis_index_groups=None, axis_size=2, tiled=False
            )[0],
            lax.axis_index_p.bind(axis_name="i"),
        ]

    found = tl.vmap(f, axis_name="i")(np.array([3.0, 4.0]))
    np.testing.assert_array_equal(found, [[7, 7], [4, 4], [3, 3], [0, 3], [3, 3], [0, 1]])
    exchange = {"split_axis": 0, "concat_axis": 0, "axis_name": "i", "axis_index_groups": None, "tiled": False}
    found = tl.vmap(lambda x: lax.all_to_all_p.bind(x, **exchange), axis_name="i")(X[:, :2])
    np.testing.assert_array_equal(found, X[:, :2].T)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_total_order(dtype):
    one = tnp.asarray([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan], dtype)
    x, y = np.asarray(one)[:, None].repeat(8, 1), np.asarray(one)[None].repeat(8, 0)
    np.testing.assert_array_equal(lax.lt_to_p.bind(x, y), np.triu(np.ones((8, 8)), 1))
    np.testing.assert_array_equal(lax.le_to_p.bind(x, y), np.triu(np.ones((8, 8))))
    np.testing.assert_array_equal(lax.eq_to_p.bind(x, y), np.eye(8))
    assert lax.lt_to_p.bind(1, 2) and not lax.lt_to_p.bind(np.True_, np.False_)
    with pytest.raises(TypeError, match=r"complex numbers have no order: complex128\[\]"):
        lax.eq_to_p.bind(np.array(1j), np.array(1j))


def test_gamma_numbers_are_those_of_the_sampler():
    keys, a = tl.random.split(tl.random.key(0), 2), tnp.array([0.5, 2.0])
    bind = tl.random.random_gamma_p.bind
    np.testing.assert_array_equal(bind(keys[0], a, log_space=False), tl.random.gamma(keys[0], a))
    drawn = bind(keys, a, log_space=True)
    np.testing.assert_array_equal(drawn, [tl.random.loggamma(k, x) for k, x in zip(keys, a)])


def test_they_find_the_equations_that_there_are():
    program = tl.make_jaxpr(lambda x: lax.top_k(lax.squeeze(x, (0,)), 1))(X[None])
    assert [eqn.primitive == lax.top_k_p for eqn in program.eqns].count(True) == 1
    assert not any(eqn.primitive == lax.squeeze_p for eqn in program.eqns)  # a reshape
    assert len({lax.squeeze_p, lax.top_k_p, lax.tile_p}) == 3 and str(lax.squeeze_p) == "squeeze"


def test_their_derivatives():
    value, tangent = ad.primitive_jvps[lax.tile_p]([X], [2 * X], reps=(2, 1))
    np.testing.assert_array_equal(value, np.tile(X, (2, 1)))
    np.testing.assert_array_equal(tangent, np.tile(2 * X, (2, 1)))
    values, tangents = ad.primitive_jvps[lax.unstack_p]([X], [2 * X], axis=0)
    np.testing.assert_array_equal([values, tangents], [X, 2 * X])
    with pytest.raises(TypeError, match="squeeze is a primitive of Tapeless, with rules of its own"):
        ad.primitive_jvps[lax.squeeze_p] = lambda primals, tangents: None


def test_they_are_jaxs():
    jax = pytest.importorskip("jax")
    for name, primitive in FUNCTIONS.items():
        theirs = next(getattr(m, name) for m in (jax.lax, jax.lax.linalg, jax.random) if hasattr(m, name))
        assert theirs.multiple_results == primitive.multiple_results, name


def test_parameters_without_meaning_here():
    with pytest.raises(NotImplementedError, match=r"bind: windows with dilation \(2, 1\) and \(1, 1\)\."):
        dilated = DILATED | {"base_dilation": (2, 1)}
        lax.select_and_gather_add_p.bind(X, X, select_prim=lax.ge_p, **dilated)
