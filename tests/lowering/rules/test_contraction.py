"""Convolutions by parts and by limbs, groups cut by negative padding; small matrices and vectors."""

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering.rules.contraction import _complex_convolution, _integer_convolution
from tests.samples.contraction import ROWS
from tests.test_primitives import compute

CONVOLUTIONS = [row for row in ROWS if row.primitive.name == "conv_general_dilated"]


@pytest.mark.parametrize("row", CONVOLUTIONS, ids=str)
def test_complex_convolutions_by_parts(row):
    x, y = (np.asarray(a * (1 + 0.5j), np.complex64) for a in row.args)
    params = {**row.params, "preferred_element_type": None}
    (wanted,), found = row.primitive.bind(x, y, **params), _complex_convolution(x, y, **params)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)  # sums of products in another order


INTEGERS = "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()


@pytest.fixture(scope="module", params=CONVOLUTIONS, ids=str)
def integer_convolutions(request: pytest.FixtureRequest) -> dict[str, list[tuple[Any, Any]]]:
    """Those of a row by name of the type, at once and by limbs, into this type and a wider one: one program."""
    row, rng = request.param, np.random.default_rng(0)
    kinds = {name: np.iinfo(name) for name in INTEGERS}
    cases = [(n, wider) for n, kind in kinds.items() for wider in (None, np.dtype(np.int32))[: 1 + (kind.bits < 32)]]
    args = {
        name: [rng.integers(kind.min, kind.max, a.shape, name, endpoint=True) for a in row.args]
        for name, kind in kinds.items()
    }

    def f(*xs: Any) -> list[Any]:
        given = dict(zip(INTEGERS, zip(xs[::2], xs[1::2])))
        outs = []
        for name, wider in cases:
            params = {**row.params, "preferred_element_type": wider}
            outs += [*row.primitive.bind(*given[name], **params), _integer_convolution(*given[name], **params)]
        return outs

    found = iter(compute(f, *[x for name in INTEGERS for x in args[name]]))
    pairs: dict[str, list[tuple[Any, Any]]] = {name: [] for name in INTEGERS}
    for name, _ in cases:
        pairs[name].append((next(found), next(found)))
    return pairs


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_convolutions_by_limbs(integer_convolutions, name):
    """What the CPU computes at once, with numbers of all bits, whose sums wrap."""
    for wanted, found in integer_convolutions[name]:
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype


@pytest.mark.parametrize("seed", range(12))
def test_grouped_convolutions_cut_by_negative_padding(seed):
    """The adjoints of a bilinear map: <x, gx> = <w, gw> = <y, c>; some of the results are empty."""
    rng = np.random.default_rng(seed)
    groups, by_features = int(rng.integers(2, 5)), seed % 2 == 0
    x = rng.normal(size=(2, groups, 7) if by_features else (2 * groups, 3, 7))
    w = rng.normal(size=(2 * groups, 1 if by_features else 3, int(rng.integers(1, 4))))
    convolve = partial(
        lax.conv_general_dilated,
        window_strides=(int(rng.integers(1, 4)),),
        padding=[tuple(rng.integers(-4, 1, 2).tolist())],
        lhs_dilation=(int(rng.integers(1, 3)),),
        rhs_dilation=(int(rng.integers(1, 3)),),
        **{"feature_group_count" if by_features else "batch_group_count": groups},
    )
    y, pull = tl.vjp(convolve, x, w)
    c = rng.normal(size=y.shape)
    for gx, gw in (pull(c), tl.jit(lambda x, w, c: tl.vjp(convolve, x, w)[1](c))(x, w, c)):
        np.testing.assert_allclose([np.vdot(gx, x), np.vdot(gw, w)], [np.vdot(y, c)] * 2, rtol=1e-12, atol=1e-12)


def batched(lhs: str, rhs: str) -> Any:
    """Return the contraction of axes named k, l with a batch named b, c; its result has axes of b, c, lhs, rhs."""
    dims = [tuple([tuple([own.index(a) for a in names if a in own]) for own in (lhs, rhs)]) for names in ("kl", "bc")]
    return lambda x, y: lax.dot_general(x, y, tuple(dims))


SIZES = {"b": 3, "c": 2, "k": 3, "l": 2, "m": 1, "n": 4, "o": 3}
OTHERS = ["bk", "kb", "bkm", "mbk", "kmb"]  # of the vectors; m has one element
CASES = [
    (vectors, "".join(axes)) for vectors in OTHERS for own in ("", "n") for axes in itertools.permutations("bk" + own)
]
CASES += [("bckl", "cblnko"), ("lbkc", "bcnlok"), ("klbmc", "bcko" + "l"), ("bck", "bcok")]


def test_small_matrices_and_vectors_of_a_batch_are_multiplied_elementwise(rng: np.random.Generator):
    """In every order of axes, on both sides: what is no product of the parts in their order stays a contraction."""

    def arrays(names: str) -> Any:
        return rng.normal(size=[SIZES[a] for a in names]).astype(np.float32)

    pairs = [pair for vectors, matrices in CASES for pair in ((vectors, matrices), (matrices, vectors))]
    operands = [(arrays(lhs), arrays(rhs)) for lhs, rhs in pairs]

    def run(operands: Any) -> Any:
        return [batched(*pair)(*xy) for pair, xy in zip(pairs, operands, strict=True)]

    for (lhs, rhs), (x, y), found in zip(pairs, operands, tl.jit(run)(operands), strict=True):
        free = [a for a in lhs + rhs if a in "mno"]
        wanted = np.einsum(f"{lhs},{rhs}->{''.join([a for a in 'bc' if a in lhs] + free)}", x, y)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5, err_msg=f"{lhs} {rhs}")  # of six terms at most


@pytest.mark.parametrize(
    ("x", "y", "dot"),
    [
        ((100, 1, 2), (100, 2, 2), False),
        ((100, 2, 3), (100, 3, 1), False),
        ((7, 16), (7, 16, 16), False),
        ((7, 17), (7, 17, 16), True),  # large
        ((100, 2, 2), (100, 2, 2), True),  # two matrices
        ((1, 2), (1, 2, 2), True),  # no batch
    ],
)
def test_which_contractions_are_sums_of_products(x: Any, y: Any, dot: bool):
    dims = (((len(x) - 1,), (1,)), ((0,), (0,)))
    for dtype, kept in (("float32", dot), ("complex128", dot), ("int32", True), ("float16", True)):
        text = tl.jit(lambda x, y: lax.dot_general(x, y, dims)).lower(np.ones(x, dtype), np.ones(y, dtype)).as_text()
        assert ("stablehlo.dot_general" in text) == kept, dtype


def test_products_of_small_vectors_are_added_up_as_one_row(rng: np.random.Generator):
    """Of vectors, and of reshaped matrices, which XLA would reduce along their own axes: here, in loops, in batches."""

    def sums(x: Any, y: Any) -> list[Any]:
        columns = x.T.reshape(-1)  # no view of the matrix
        return [tnp.vdot(x, y), x[1] @ y[1], columns @ columns, tnp.dot(x.reshape(-1)[::-1], y.reshape(-1))]

    def programs(pairs: Any) -> Any:
        batches = [(tnp.stack([x, x + 1]), tnp.stack([y, y])) for x, y in pairs]
        looped = [lax.map(lambda xy: sums(*xy), batch) for batch in batches]
        return [sums(x, y) for x, y in pairs], looped, [tl.vmap(sums)(*batch) for batch in batches]

    shapes, dtypes = ((33, 31), (5, 7), (2, 40)), ("float32", "complex64", "int32", "uint64")
    pairs = [tuple(abs(8 * rng.normal(size=(2, *s))).astype(d)) for s in shapes for d in dtypes]
    pairs.append((np.full((6, 6), np.inf, "f"), np.zeros((6, 6), "f")))
    for (x, y), found, looped, mapped in zip(pairs, *tl.jit(programs)(pairs), strict=True):
        for k, wanted in enumerate(by_numpy(x, y)):
            for each in (found[k], looped[k][0], mapped[k][0]):
                np.testing.assert_allclose(each, wanted, rtol=1e-5)  # sums of a thousand positive terms
    text = tl.jit(tnp.vdot).lower(*pairs[0]).as_text()
    assert "dot_general" not in text
    assert "(tensor<1x1023xf32>, tensor<f32>) -> tensor<1xf32>" in text


def by_numpy(x: Any, y: Any) -> list[Any]:
    x, y = [z if z.dtype.kind in "iu" else z.astype(np.complex128 if z.dtype.kind == "c" else float) for z in (x, y)]
    with np.errstate(invalid="ignore"):  # infinity times 0
        columns = x.T.reshape(-1)
        return [np.vdot(x, y), x[1] @ y[1], columns @ columns, x.reshape(-1)[::-1] @ y.reshape(-1)]
