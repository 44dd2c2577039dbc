"""Objects that have `__jax_array__` are taken as arrays by the NumPy namespace; and how arrays print."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")


class Wrapped:
    """An array in an object, as a variable of a library holds it; NumPy's conversion fails, as it does for tracers."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __jax_array__(self) -> Any:
        return self.x

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise ValueError("__jax_array__ comes first")


V, M, K = np.float32([0.5, 0.25, 0.75]), np.float32([[2, 0.5], [0.5, 1]]), np.int32([2, 1, 0])
CALLS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys("sin abs sum mean argsort cumsum flip diff unique nonzero argwhere size ndim shape".split(), (V,)),
    **dict.fromkeys("zeros_like ones_like isnan var max reshape_flat trim_zeros iscomplexobj atleast_2d".split(), (V,)),
    **dict.fromkeys(
        "add subtract divide maximum power dot outer isclose allclose array_equal convolve".split(), (V, V)
    ),
    **dict.fromkeys("trace tril diag transpose tril_indices_from diag_indices_from ravel matrix_power_2".split(), (M,)),
    **dict.fromkeys("matmul kron setdiff1d".split(), (M, M)),
    **dict.fromkeys("take take_along_axis roll delete where_index".split(), (V, K)),
    **dict.fromkeys("hsplit_3 resize_4 piecewise select ravel_multi_index fill_diagonal".split(), (V, V > 0.3, K)),
    "where": (V > 0.3, V, V),
    "quantile": (V, V),
    "interp": (V, V, V),
    "einsum_ij": (M,),
    "mixed": (K, V),
}
OWN: dict[str, Any] = {
    "reshape_flat": lambda x: tnp.reshape(x, (-1,)),
    "hsplit_3": lambda x, _, __: tnp.hsplit(x, 3),
    "resize_4": lambda x, _, __: tnp.resize(x, 4),
    "piecewise": lambda x, mask, _: tnp.piecewise(x, [mask], [tnp.sin, tnp.cos]),
    "select": lambda x, mask, i: tnp.select([mask], [x], i),
    "ravel_multi_index": lambda _, __, i: tnp.ravel_multi_index([i, i], (3, 4)),
    "fill_diagonal": lambda x, _, __: tnp.fill_diagonal(tnp.zeros((3, 3)), x, inplace=False),
    "matrix_power_2": lambda x: tnp.linalg.matrix_power(x, 2),
    "where_index": lambda x, i: tnp.asarray(x)[tnp.asarray(i)],
    "einsum_ij": lambda x: tnp.einsum("ij,jk", x, x),
    "mixed": lambda i, x: tnp.array([i, x]) + tnp.stack([x, i]) + tnp.concatenate([x, i])[:3],
}


@pytest.mark.parametrize("name", CALLS)
def test_functions(name: str):
    f = OWN.get(name) or getattr(tnp, name)
    plain, wrapped = (f(*[wrap(tnp.asarray(x)) for x in CALLS[name]]) for wrap in (lambda x: x, Wrapped))
    assert tl.tree.structure(plain) == tl.tree.structure(wrapped)
    for a, b in zip(tl.tree.leaves(plain), tl.tree.leaves(wrapped), strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.asarray(a).dtype == np.asarray(b).dtype


def test_shape_and_dtype_come_before_the_protocol():
    class Described:
        shape, dtype = (2, 3), np.dtype("int8")

        def __jax_array__(self) -> Any:
            raise ValueError("shape and dtype come first")

    for found in (tnp.zeros_like(Described()), tnp.full_like(Described(), 2)):
        assert found.shape == (2, 3) and found.dtype == np.int8


def test_operators_traced():
    def f(x):
        w = Wrapped(x)
        y = x + w + (w - x) * 2 + x @ w + tnp.sin(w) + x.at[0].set(Wrapped(x[1]))
        return (y + (x == w)).sum()

    def plain(x):
        return (x + x + (x - x) * 2 + x @ x + tnp.sin(x) + x.at[0].set(x[1]) + (x == x)).sum()

    for transform in (tl.jit, lambda g: tl.jit(tl.grad(g))):
        np.testing.assert_array_equal(transform(f)(V), transform(plain)(V))


def test_what_is_given_must_be_an_array():
    with raises(TypeError, "sin: argument 0 must be an array or a number, not str: 'no array'."):
        tnp.sin(Wrapped("no array"))


def test_print_options():
    x = tnp.linspace(0, 1, 4)
    with tnp.printoptions(precision=2):
        assert repr(x) == "Array([0.  , 0.33, 0.67, 1.  ], dtype=float32)"
        assert tnp.get_printoptions()["precision"] == 2 and str(np.float64([1 / 3])) == "[0.33]"
    before = tnp.get_printoptions()
    tnp.set_printoptions(suppress=True, precision=3)
    try:
        assert str(x[1]) == "0.33333334" and str(x[:2]) == "[0.    0.333]"
    finally:
        tnp.set_printoptions(**before)
    assert repr(x[1:2]) == "Array([0.33333334], dtype=float32)"


def test_arrays_are_printed_with_options_of_the_call():
    x = tnp.array([1 / 3, 1e-9])
    assert tnp.array_repr(x, precision=2, suppress_small=True) == "Array([0.33, 0.  ], dtype=float32)"
    assert tnp.array_str(x, precision=2, suppress_small=True) == "[0.33 0.  ]"
    assert tnp.array_repr(x) == repr(x) and tnp.array_str(x) == str(x)
    assert tnp.iterable([1]) and not tnp.iterable(3)
