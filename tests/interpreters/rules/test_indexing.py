"""Writing the greater or the lesser: who has the derivative, whether windows may overlap or not."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp

pytestmark = pytest.mark.usefixtures("eager_by_steps")

B, V = np.array([1.0, 5.0, 2.0, np.nan, 3.0]), np.array([4.0, 4.0, 2.0, 1.0, np.nan])
PLACES = np.arange(5)
# of the operand and of the update: ties are shared, and so it is if there is a nan
WINS = {"max": ([0.0, 1.0, 0.5, 0.5, 0.5], [1.0, 0.0, 0.5, 0.5, 0.5])}
WINS["min"] = ([1.0, 0.0, 0.5, 0.5, 0.5], [0.0, 1.0, 0.5, 0.5, 0.5])


def written(how, b, i, v, **promises):
    return getattr(b.at[i], how)(v, **promises)


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("how", WINS)
def test_who_has_the_derivative(how, unique):
    def f(b, v):
        return tnp.sum(written(how, b, PLACES, v, unique_indices=unique) * tnp.arange(1.0, 6.0))

    weights = np.arange(1.0, 6.0)
    for found, wins in zip(tl.grad(f, (0, 1))(tnp.asarray(B), V), WINS[how]):
        np.testing.assert_array_equal(found, weights * wins)
    pushed = tl.jvp(lambda b, v: written(how, b, PLACES, v, unique_indices=unique), (tnp.asarray(B), V), (B, V))[1]
    alone = [t * np.array(w) for t, w in zip((B, V), WINS[how])]
    np.testing.assert_array_equal(pushed[:3], (alone[0] + alone[1])[:3])


@pytest.mark.parametrize("how", WINS)
def test_one_place(how):
    """The rest is left alone, and so is everything if the place is outside."""
    b = tnp.asarray(B[:3])
    for i in range(3):
        of_b, of_v = tl.grad(lambda b, v, i=i: tnp.sum(written(how, b, i, v)), (0, 1))(b, V[i])
        expected = np.ones(3)
        expected[i] = WINS[how][0][i]
        np.testing.assert_array_equal(of_b, expected)
        np.testing.assert_array_equal(of_v, WINS[how][1][i])
    of_b, of_v = tl.grad(lambda b, v: tnp.sum(written(how, b, 7, v, mode="drop")), (0, 1))(b, 9.0)
    np.testing.assert_array_equal(of_b, np.ones(3))
    np.testing.assert_array_equal(of_v, 0.0)
    second = tl.hessian(lambda b: tnp.sum(written(how, b, 1, b[0] ** 2) ** 2))(b)
    wins = {"max": np.diag([2.0, 2.0, 2.0]), "min": np.diag([14.0, 0.0, 2.0])}[how]
    np.testing.assert_allclose(second, wins, rtol=1e-12)  # of float64


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("how", WINS)
def test_complex_numbers(how, unique):
    """Ordered by real, then imaginary part."""
    b, v = B[:3] + 1j * np.array([0, 0, 1]), V[:3] + 0j
    wins = {"max": ([0, 1, 1], [1, 0, 0]), "min": ([1, 0, 0], [0, 1, 1])}[how]
    weights = np.array([1, 2j, 3 - 1j])

    def f(b, v):
        return tnp.sum(tnp.real(weights * written(how, b, PLACES[:3], v, unique_indices=unique)))

    for found, wanted in zip(tl.grad(f, (0, 1))(tnp.asarray(b), tnp.asarray(v)), wins):
        np.testing.assert_array_equal(found, weights * np.array(wanted))


def test_writes_into_an_array_without_elements():
    """Nothing is written at traced places, so that the values that are written have no derivative."""

    @tl.jit
    def derivatives(b, v, i):
        def f(b, v):
            at = b.at[i, i]
            return (
                at.add(v),
                at.set(v),
                at.multiply(v, unique_indices=True),
                at.max(v),
                tl.vmap(lambda k: b.at[k].min(v))(i),
            )

        out, pull = tl.vjp(f, b, v)
        return pull(out), tl.jvp(f, (b, v), (b, v))[1]

    (of_b, of_v), pushed = derivatives(np.zeros((3, 0)), 1.0, np.arange(2))
    assert of_b.shape == (3, 0) and [x.shape for x in pushed] == [(3, 0)] * 4 + [(2, 3, 0)]
    assert of_v == 0.0
