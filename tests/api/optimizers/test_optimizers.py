"""Optimizers, schedules and clipping: number by number those of optax, and of formulas in NumPy where it is absent."""

import inspect
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import optimizers
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(0)
MATRIX, TARGET = RNG.normal(size=(6, 4)), RNG.normal(size=(6, 3))
START = {"w": RNG.normal(size=(4, 3)), "b": [np.zeros(3), None]}
STEPS = 5


def loss(xp: Any, params: Any) -> Any:
    out = xp.asarray(MATRIX) @ params["w"] + params["b"][0] - TARGET
    return (out**2).sum() + 0.1 * (params["w"] ** 4).sum()


def cases(o: Any) -> dict[str, Any]:
    """Optimizers of optax, or of ours: the names are the same."""
    falling = o.polynomial_schedule(0.1, 0.01, 2, 4, 1)
    mask = {"w": True, "b": [False, None]}
    return {
        "sgd": o.sgd(0.01),
        "momentum": o.sgd(0.01, momentum=0.9),
        "nesterov": o.sgd(falling, momentum=0.9, nesterov=True, accumulator_dtype="float16"),
        "adam": o.adam(0.1),
        "adam, corners": o.adam(0.1, 0.8, 0.95, 1e-3, 1e-5, "float16", nesterov=True),
        "adamw": o.adamw(falling, weight_decay=0.1),
        "adamw, masked": o.adamw(0.1, weight_decay=falling, mask=mask, nesterov=True),
        "adamw, mask called": o.adamw(0.1, weight_decay=0.1, mask=lambda p: {"w": False, "b": [True, None]}),
        "lion": o.lion(0.02, mu_dtype="float16"),
        "rmsprop": o.rmsprop(0.05),
        "rmsprop, centered": o.rmsprop(0.01, 0.8, 1e-3, 0.1, False, True, 0.9, True, True),
        "rmsprop, corrected": o.rmsprop(0.01, eps_in_sqrt=False, bias_correction=True, momentum=0.5),
        "adagrad": o.adagrad(0.5, 0.0, 1e-3),
        "clipped": o.chain(o.clip(0.5), o.clip_by_global_norm(0.7), o.scale_by_adam(), o.scale(-0.1)),
        "clipped by blocks": o.chain(o.clip_by_block_rms(0.2), o.scale_by_learning_rate(0.1)),
        "clipped by units": o.chain(o.adaptive_grad_clip(0.1), o.scale_by_learning_rate(0.1)),
        "clipped by rows": o.chain(o.adaptive_grad_clip(0.1, 1e-2, -1), o.scale_by_learning_rate(0.1)),
        "some": o.masked(o.sgd(0.1), mask),
        "none": o.chain(o.set_to_zero(), o.identity(), o.stateless(lambda g, p: g)),
        "lbfgs": o.lbfgs(),
        "lbfgs, remembering two": o.lbfgs(0.3, 2, False, None),
        "lbfgs, backtracking": o.lbfgs(
            memory_size=3, linesearch=o.scale_by_backtracking_linesearch(15, 1e-3, 0.5, 2.0, 1.0, store_grad=True)
        ),
        "lbfgs, zooming": o.lbfgs(linesearch=o.scale_by_zoom_linesearch(6, 0.9, 1e-3, 3.0, 1e-3, 0.1, None, 1e-4)),
        "searched far": o.chain(o.scale(-1e-3), o.scale_by_zoom_linesearch(9, curv_rtol=0.01)),
        "searched uphill": o.chain(o.scale(0.1), o.scale_by_zoom_linesearch(4)),
        "searched uphill, back": o.chain(o.scale(1.0), o.scale_by_backtracking_linesearch(3, rtol=0.1, atol=0.1)),
    }


NAMES = list(cases(optimizers))
SEARCHING = [name for name in NAMES if name.startswith("searched") or (name.startswith("lbfgs") and "two" not in name)]


def trained(o: Any, name: str, xp: Any, library: Any, jit: bool) -> list[Any]:
    """Leaves of parameters and state after each step."""
    optimizer, f = cases(o)[name], partial(loss, xp)

    def step(params: Any, state: Any) -> Any:
        value, grads = library.value_and_grad(f)(params)
        more = {"value": value, "grad": grads, "value_fn": f} if name in SEARCHING else {}
        updates, state = optimizer.update(grads, state, params, **more)
        return o.apply_updates(params, updates), state

    step = library.jit(step) if jit else step
    params = library.tree.map(xp.asarray, START)
    state, seen = optimizer.init(params), []
    for _ in range(STEPS):
        params, state = step(params, state)
        seen.append(library.tree.leaves((params, state)))
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_numbers_of_optax(name: str):
    """In 64 bits, where what is rounded in another order does not hide what is computed in another way."""
    optax, jax = pytest.importorskip("optax"), pytest.importorskip("jax")
    with jax.enable_x64(True):
        theirs = trained(optax, name, jax.numpy, jax, True)
        theirs = [[(np.asarray(x, float), np.dtype(x.dtype)) for x in leaves] for leaves in theirs]
    for expected, found in zip(theirs, trained(optimizers, name, tnp, tl, True), strict=True):
        for (y, dtype), x in zip(expected, found, strict=True):
            assert x.dtype == dtype or dtype == np.int64  # some counters of optax are of the default width
            tolerance = 1e-3 if x.dtype == np.float16 else 1e-9
            np.testing.assert_allclose(np.asarray(x, float), y, rtol=tolerance, atol=tolerance)


SCHEDULES = {
    "constant": lambda o: o.constant_schedule(0.3),
    "linear": lambda o: o.linear_schedule(0.1, 1.0, 4, 2),
    "of no steps": lambda o: o.linear_schedule(0.1, 1.0, 0),
    "polynomial": lambda o: o.polynomial_schedule(1.0, 0.1, 1.5, 7, 1),
    "steps": lambda o: o.piecewise_constant_schedule(1.0, {3: 0.5, 6: 0.0, 1: 2.0}),
    "no steps": lambda o: o.piecewise_constant_schedule(1.0),
    "exponential": lambda o: o.exponential_decay(1.0, 3, 0.5, 2),
    "staircase": lambda o: o.exponential_decay(1.0, 3, 0.5, 1, True, 0.2),
    "growing": lambda o: o.exponential_decay(1.0, 2, 2.0, end_value=5.0),
    "cosine": lambda o: o.cosine_decay_schedule(1.0, 6, 0.1, 2.0),
    "interpolated": lambda o: o.piecewise_interpolate_schedule("linear", 0.1, {2: 10.0, 7: 0.3}),
    "along cosines": lambda o: o.piecewise_interpolate_schedule("cosine", 0.1, {2: 10.0, 2.5: 0.5, 7: 0.3}),
    "interpolated nowhere": lambda o: o.piecewise_interpolate_schedule("cosine", 0.1),
    "one cycle": lambda o: o.linear_onecycle_schedule(8, 1.0, 0.25, 0.75, 10.0, 100.0),
    "one cosine": lambda o: o.cosine_onecycle_schedule(8, 1.0),
    "warm": lambda o: o.warmup_constant_schedule(0.0, 1.0, 3),
    "warm, cosine": lambda o: o.warmup_cosine_decay_schedule(0.0, 1.0, 3, 9, 0.1, 1.5),
    "cold, cosine": lambda o: o.warmup_cosine_decay_schedule(0.0, 0.0, 0, 9),
    "warm, exponential": lambda o: o.warmup_exponential_decay_schedule(0.0, 1.0, 3, 4, 0.5, 1, True, 0.3),
    "restarts": lambda o: o.sgdr_schedule(
        [
            {"init_value": 0.0, "peak_value": p, "decay_steps": 5, "warmup_steps": w, "end_value": 0.1}
            for p, w in ((1.0, 2), (0.5, 1))
        ]
    ),
    "joined": lambda o: o.join_schedules([o.linear_schedule(0.0, 1.0, 2), o.constant_schedule(7.0)], [4]),
}


def test_schedules_of_optax():
    """At every step, one by one and all at once, of integers and of floating point."""
    optax = pytest.importorskip("optax")
    counts = np.arange(13, dtype=np.int32)

    def everywhere(counts: Any) -> Any:
        return {name: make(optimizers)(counts) for name, make in SCHEDULES.items()}

    at_once = tl.jit(everywhere)(counts)
    for name, make in SCHEDULES.items():
        theirs = [make(optax)(n) for n in counts]
        for ours in (np.broadcast_to(at_once[name], 13), [make(optimizers)(int(n)) for n in counts]):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7, err_msg=name)


def test_schedules_follow_their_formulas():
    counts = np.arange(10)
    linear = optimizers.linear_schedule(1.0, 3.0, 4, 2)
    np.testing.assert_allclose([linear(int(n)) for n in counts], np.interp(counts, [2, 6], [1, 3]), rtol=1e-6)
    cosine = optimizers.cosine_decay_schedule(2.0, 5, 0.1)
    wave = 0.5 * (1 + np.cos(np.pi * np.minimum(counts, 5) / 5))
    np.testing.assert_allclose([cosine(int(n)) for n in counts], 2 * (0.9 * wave + 0.1), rtol=1e-6)
    halving = optimizers.exponential_decay(1.0, 2, 0.25)
    np.testing.assert_allclose([halving(int(n)) for n in counts], 0.5**counts, rtol=1e-6)
    cycle = optimizers.linear_onecycle_schedule(8, 1.0, 0.25, 0.75, 10.0, 100.0)
    expected = np.interp(counts, [0, 2, 6, 8], [0.1, 1.0, 0.1, 0.001])
    np.testing.assert_allclose([cycle(int(n)) for n in counts], expected, rtol=1e-5)


def formula(name: str, x: Any, grad: Any) -> Any:
    """Parameters after some steps, by formulas of the papers, with rate 0.1."""
    m, v = np.zeros_like(x), np.full_like(x, 0.1 if name == "adagrad" else 0.0)
    for n in range(1, STEPS + 1):
        g = grad(x)
        if name == "nesterov":
            m = g + 0.9 * m
            x = x - 0.1 * (g + 0.9 * m)
        elif name == "adamw":
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            x = x - 0.1 * (m / (1 - 0.9**n) / (np.sqrt(v / (1 - 0.999**n)) + 1e-8) + 1e-4 * x)
        elif name == "lion":
            x = x - 0.1 * (np.sign(0.9 * m + 0.1 * g) + 1e-3 * x)
            m = 0.99 * m + 0.01 * g
        elif name == "rmsprop":
            v = 0.9 * v + 0.1 * g * g
            x = x - 0.1 * g / np.sqrt(v + 1e-8)
        else:
            v = v + g * g
            x = x - 0.1 * g / np.sqrt(v + 1e-7)
    return x


@pytest.mark.parametrize("name", ["nesterov", "adamw", "lion", "rmsprop", "adagrad"])
def test_formulas_in_64_bits(name: str, rng: np.random.Generator):
    """What is computed beside the parameters, powers of decays and steps of schedules, is as exact as they are."""
    makers = {
        **{n: getattr(optimizers, n) for n in ("adamw", "lion", "rmsprop", "adagrad")},
        "nesterov": partial(optimizers.sgd, momentum=0.9, nesterov=True),
    }
    optimizer = makers[name](0.1)
    x = start = tnp.asarray(rng.normal(size=5))
    state = optimizer.init(x)
    assert x.dtype == np.float64
    scales = np.arange(1.0, 6.0)
    for _ in range(STEPS):
        updates, state = optimizer.update(tl.grad(lambda x: (scales * x**2).sum())(x), state, x)
        x = optimizers.apply_updates(x, updates)
    assert x.dtype == np.float64
    expected = formula(name, np.asarray(start), lambda x: 2 * scales * x)
    np.testing.assert_allclose(x, expected, rtol=1e-13)


def rosenbrock(x: Any, scale: Any = 100.0) -> Any:
    return (scale * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lbfgs_finds_the_minimum(dtype: str):
    """With values and gradients from the state, in one loop, and for a batch of starts, each with its own steps."""
    optimizer = optimizers.lbfgs()
    known = optimizers.value_and_grad_from_state(rosenbrock)

    def minimum(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            x, state = carry
            value, grad = known(x, state=state)
            updates, state = optimizer.update(grad, state, x, value=value, grad=grad, value_fn=rosenbrock)
            return (optimizers.apply_updates(x, updates), state), value

        (x, _), values = tl.lax.scan(step, (x, optimizer.init(x)), length=60)
        return x, values

    starts = tnp.asarray(np.random.default_rng(3).normal(size=(2, 4)), dtype)
    found, values = tl.jit(tl.vmap(minimum))(starts)
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(found, np.ones((2, 4)), rtol=1e-3 if dtype == "float32" else 1e-9)
    assert np.all(np.diff(values, axis=1) <= 1e-6 * np.abs(values[:, :-1]) + 1e-12)  # it never climbs


def test_a_learning_rate_is_a_number():
    message = (
        "learning_rate must be a number or a function of steps, not a dict with 'w'.\n"
        "  Parameters are given to init: state = optimizer.init(params)."
    )
    with raises(TypeError, message):
        optimizers.adam({"w": tnp.ones((2, 3))}, 1e-3)
    with raises(TypeError, "learning_rate must be a number or a function of steps, not '1e-3' of type str."):
        optimizers.adam("1e-3")


def test_arguments_reach_the_loss():
    optimizer, x = optimizers.lbfgs(memory_size=1), tnp.array([0.5, 2.0])
    value, grad = tl.value_and_grad(rosenbrock)(x, 1.0)
    given = {"value": value, "grad": grad, "value_fn": rosenbrock}
    _, state = optimizer.update(grad, optimizer.init(x), x, scale=1.0, **given)
    _, other = optimizer.update(grad, optimizer.init(x), x, **given)
    assert float(state[2].value) != float(other[2].value)
    with raises(
        TypeError,
        "scale_by_zoom_linesearch: update was given temperature, which value_fn does not take.\n"
        "  It takes x, scale; update itself takes value, grad and value_fn.",
    ):
        optimizer.update(grad, optimizer.init(x), x, temperature=1.0, **given)


def test_derivatives_of_training():
    """An update is a function as any other: its derivative by the learning rate, in both modes."""

    def after(rate: Any) -> Any:
        optimizer = optimizers.chain(optimizers.clip_by_global_norm(1.0), optimizers.adam(rate))
        x = tnp.array([1.0, -2.0], "float64")
        state = optimizer.init(x)
        for _ in range(2):
            updates, state = optimizer.update(tl.grad(lambda x: (x**4).sum())(x), state, x)
            x = optimizers.apply_updates(x, updates)
        return (x**2).sum()

    rate = tnp.array(0.1, "float64")
    slope = (after(rate + 1e-6) - after(rate - 1e-6)) / 2e-6
    forward = tl.jvp(after, (rate,), (tnp.ones_like(rate),))[1]
    np.testing.assert_allclose([tl.grad(after)(rate), forward], [slope, slope], rtol=1e-7)


def test_narrow_and_complex_parameters():
    """Parameters keep their dtypes, and complex ones go along their conjugated gradients; second moments are real."""
    x = {"half": tnp.ones(3, "bfloat16"), "z": tnp.array([1 + 2j, 3 - 1j], "complex64")}
    optimizer = optimizers.adam(0.1)
    state = optimizer.init(x)
    assert state[0].nu["z"].dtype == np.float32

    def size(x: Any) -> Any:
        return (x["half"] ** 2).sum().astype("float32") + (abs(x["z"]) ** 2).sum()

    for _ in range(30):
        grads = tl.tree.map(tnp.conj, tl.grad(size)(x))
        updates, state = optimizer.update(grads, state, x)
        x = optimizers.apply_updates(x, updates)
    assert [x["half"].dtype, x["z"].dtype] == ["bfloat16", "complex64"]
    assert float(size(x)) < 3.5  # of 18


def test_norms_counters_and_states():
    tree = {"a": tnp.array([3.0, 0.0]), "b": tnp.array([4j])}
    assert float(optimizers.global_norm(tree)) == 5.0 and float(optimizers.global_norm({})) == 0.0
    assert int(optimizers.safe_increment(tnp.full((), 126, "int8"))) == 127
    assert int(optimizers.safe_increment(tnp.full((), 127, "int8"))) == 127
    fields = optimizers.adam(0.1).init(tree)[0]
    assert fields._fields == ("count", "mu", "nu") and fields.count.dtype == np.int32
    clipped, _ = optimizers.clip_by_global_norm(1.0).update(tree, optimizers.EmptyState())
    np.testing.assert_allclose(optimizers.global_norm(clipped), 1.0, rtol=1e-6)
    zeros, _ = optimizers.clip_by_global_norm(1.0).update({"a": tnp.zeros(2)}, optimizers.EmptyState())
    np.testing.assert_array_equal(zeros["a"], 0)
    no_state, _ = optimizers.adagrad(0.1, 0.0).update(tnp.zeros(2), optimizers.adagrad(0.1, 0.0).init(tnp.zeros(2)))
    np.testing.assert_array_equal(no_state, 0)


def test_errors():
    x = tnp.ones(2)
    with raises(
        ValueError, "add_decayed_weights: its update needs the parameters. Call update(updates, state, params)."
    ):
        optimizers.adamw(0.1).update(x, optimizers.adamw(0.1).init(x))
    with raises(
        ValueError,
        "update: the state must be a tuple of 2, as init of the same optimizer returns it, not a tuple of 1.\n"
        "  The order is update(gradients, state, parameters).",
    ):
        optimizers.sgd(0.1).update(x, (optimizers.EmptyState(),))
    adam = optimizers.adam(0.1)
    with raises(
        ValueError,
        "update: the state must be a tuple of 2, as init of the same optimizer returns it, not a dict with 'w'.\n"
        "  The order is update(gradients, state, parameters).",
    ):
        adam.update(adam.init({"w": x}), {"w": x})
    with raises(
        ValueError,
        "apply_updates: the shapes at ['w'] differ: float32[2,1] in the tree of parameters and float32[2] in the tree "
        "of updates.",
    ):
        optimizers.apply_updates({"b": x, "w": x[:, None]}, {"b": x, "w": x})
    for make, message in [
        (lambda: optimizers.scale_by_lbfgs(0), "scale_by_lbfgs: memory_size must be at least 1, not 0."),
        (lambda: optimizers.linear_schedule(0.0, 1.0, -1), "transition_steps must not be negative, but is -1."),
        (lambda: optimizers.exponential_decay(1.0, 2, 0.0), "exponential_decay: decay_rate must be positive, not 0.0."),
        (lambda: optimizers.cosine_decay_schedule(1.0, 0), "cosine_decay_schedule: decay_steps must be positive"),
        (lambda: optimizers.piecewise_constant_schedule(1.0, {2: -1.0}), "there is -1.0 at 2."),
        (lambda: optimizers.piecewise_interpolate_schedule("cubic", 1.0), "'linear' or 'cosine', not 'cubic'."),
        (lambda: optimizers.linear_onecycle_schedule(0, 1.0), "transition_steps must be positive, not 0."),
        (lambda: optimizers.join_schedules([], [1]), "one boundary less than that, not 1."),
        (lambda: optimizers.scale_by_zoom_linesearch(3, initial_guess_strategy="two"), "not 'two'."),
        (lambda: optimizers.safe_increment(1j), "safe_increment takes an integer or a real number, not complex64."),
        (
            lambda: optimizers.value_and_grad_from_state(rosenbrock)(x, state=optimizers.sgd(0.1).init(x)),
            "the state has 0 fields called 'value', and should have one.",
        ),
    ]:
        with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
            make()


def test_verbose_searches_say_that_they_failed(capfd: Any):
    search = optimizers.scale_by_zoom_linesearch(2, verbose=True)
    x = tnp.ones(2)
    value, grad = tl.value_and_grad(rosenbrock)(x + 1)
    search.update(grad, search.init(x), x + 1, value=value, grad=grad, value_fn=rosenbrock)
    back = optimizers.scale_by_backtracking_linesearch(2, verbose=True)
    back.update(grad, back.init(x), x + 1, value=value, grad=grad, value_fn=rosenbrock)
    tl.effects_barrier()
    printed = capfd.readouterr().out
    assert "no step satisfies the Wolfe conditions" in printed and "no step decreases the loss enough" in printed


# Arguments of optax that choose among variants of which there is one here.
NOT_HERE = {"scale_by_lion": {"mode", "smooth_beta"}, "masked": {"mask_compatible_extra_args"}}


def test_parameters_have_the_names_and_places_of_optax():
    optax = pytest.importorskip("optax")
    functions = [n for n in optimizers.__all__ if inspect.isfunction(getattr(optimizers, n))]
    assert len(functions) > 40
    for name in functions:
        theirs = [p for p in inspect.signature(getattr(optax, name)).parameters if p not in NOT_HERE.get(name, ())]
        assert list(inspect.signature(getattr(optimizers, name)).parameters) == theirs, name


def test_trees_that_differ_are_named_for_what_they_are():
    adam, params = tl.optimizers.adam(1e-3), {"w": tnp.ones(3)}
    message = r"^update: the optimizer's state does not match the tree of updates\.\n  The root is a dict with 'v' in"
    with pytest.raises(ValueError, match=message):
        adam.update({"v": tnp.ones(3)}, adam.init(params))
    message = r"^update: the tree of parameters does not match the tree of updates\.\n  The root is a dict with 'w' in"
    with pytest.raises(ValueError, match=message):
        tl.optimizers.adamw(1e-3).update(params, tl.optimizers.adamw(1e-3).init(params), {"v": tnp.ones(3)})
    message = (
        r"^apply_updates: the tree of updates does not match the tree of parameters\.\n  The root is a dict with 'w' in"
    )
    with pytest.raises(ValueError, match=message):
        tl.optimizers.apply_updates(params, {"v": tnp.ones(3)})


@pytest.mark.parametrize(
    "make",
    [
        optimizers.adagrad,
        optimizers.adam,
        optimizers.lion,
        lambda rate: optimizers.adam(rate, nesterov=True),
        optimizers.rmsprop,
        lambda rate: optimizers.rmsprop(rate, centered=True),
        lambda rate: optimizers.sgd(rate, 0.9, nesterov=True),
        lambda rate: optimizers.chain(optimizers.scale_by_lbfgs(2), optimizers.scale(-rate)),
    ],
)
def test_a_state_of_other_shapes_is_refused(make: Any):
    """Also if the shapes broadcast."""
    optimizer, params = make(0.1), {"b": tnp.ones(2), "w": tnp.ones(3)}
    state = optimizer.init({"b": tnp.ones(2), "w": tnp.ones((3, 1))})
    with raises(
        ValueError,
        "update: the shapes at ['w'] differ: float32[3] in the tree of updates and float32[3,1] in the optimizer's "
        "state.\n  Make the state by init(params), of the parameters that are trained.",
    ):
        optimizer.update(params, state, params)


def test_trees_without_an_array_where_updates_have_one_are_refused():
    adam, x = optimizers.adam(0.1), tnp.ones(2)
    with raises(
        ValueError,
        "update: the trees at ['w'] differ: float32[2] in the tree of updates and a dict with 'a' in the optimizer's "
        "state.\n  Make the state by init(params), of the parameters that are trained.",
    ):
        adam.update({"w": x}, adam.init({"w": {"a": x}}))
    with raises(
        ValueError,
        "apply_updates: the trees at ['w'] differ: float32[2] in the tree of parameters and None in the tree of "
        "updates.",
    ):
        optimizers.apply_updates({"w": x}, {"w": None})


def test_the_state_of_another_optimizer_is_refused():
    with raises(
        ValueError,
        "update: the state has a TraceState where this optimizer has another: it was made by another optimizer.\n"
        "  Make the state by init(params) of the same optimizer.",
    ):
        optimizers.adam(0.1).update(tnp.ones(2), optimizers.sgd(0.1, 0.9).init(tnp.ones(2)))


class OfAnotherLibrary:
    """An array of another library."""

    def __jax_array__(self):
        return tnp.ones(2)


def test_updates_may_be_arrays_of_another_library():
    updated = optimizers.apply_updates({"w": tnp.ones(2)}, {"w": OfAnotherLibrary()})
    np.testing.assert_array_equal(updated["w"], [2.0, 2.0])
    with raises(
        ValueError,
        "apply_updates: the shapes at ['w'] differ: float32[3] in the tree of parameters and float32[2] in the tree of "
        "updates.",
    ):
        optimizers.apply_updates({"w": tnp.ones(3)}, {"w": OfAnotherLibrary()})


MASK_ADVICE = (
    "\n  A mask is True or False for each leaf of the parameters, or for a part of them as a whole.\n"
    "  tl.tree.map_with_path(lambda path, p: ..., params) makes one by their names."
)
WRONG_MASKS: list[tuple[Any, str]] = [
    ({"enc": True}, "masked: the mask has no entry for params['dec']."),
    ({"enc": True, "dec": True, "x": False}, "masked: the mask has an entry for params['x'], which is not there."),
    (
        {"enc": {"w": True, "b": True}, "dec": True},
        "masked: the mask has an entry for params['enc']['b'], which is not there.",
    ),
    (["enc"], "masked: params is a dict with 'dec', 'enc', in the mask a list of 1."),
    ({"enc": None, "dec": True}, "masked: params['enc'] is a dict with 'w', in the mask None."),
]


@pytest.mark.parametrize("mask, message", WRONG_MASKS)
def test_masks_of_another_structure(mask: Any, message: str):
    params = {"enc": {"w": tnp.ones(2)}, "dec": tnp.ones(3)}
    right = optimizers.masked(optimizers.set_to_zero(), {"enc": True, "dec": False}).init(params)
    for given in (mask, lambda params: mask):
        with raises(ValueError, message + MASK_ADVICE):
            optimizers.masked(optimizers.set_to_zero(), given).init(params)
        with raises(ValueError, message + MASK_ADVICE):
            optimizers.masked(optimizers.set_to_zero(), given).update(params, right)
        with raises(ValueError, message + MASK_ADVICE):
            optimizers.adamw(1e-3, mask=given).init(params)


def test_integers_are_not_trained():
    message = (
        "apply_updates: a parameter is int32[3], and its update, float32[3], would be cut off.\n"
        "  Convert the parameter with astype(float), or leave it out of those that are trained."
    )
    with pytest.raises(TypeError) as caught:
        tl.optimizers.apply_updates({"w": tnp.arange(3)}, {"w": tnp.ones(3)})
    assert str(caught.value) == message


SCHEDULES = [
    optimizers.constant_schedule(1.0),
    optimizers.polynomial_schedule(1.0, 0.0, 2, 3),
    optimizers.linear_schedule(1.0, 0.0, 0),
    optimizers.piecewise_constant_schedule(1.0, {3: 0.5}),
    optimizers.piecewise_interpolate_schedule("linear", 1.0, {3: 0.5}),
    optimizers.exponential_decay(1.0, 3, 0.5),
    optimizers.cosine_decay_schedule(1.0, 3),
    optimizers.warmup_cosine_decay_schedule(0.0, 1.0, 3, 9),
    optimizers.sgdr_schedule([{"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 1, "decay_steps": 3}]),
]


def test_documentation_of_what_is_made():
    """Of `init`, `update` and schedules, which `help` shows; none is set on functions of others."""
    for optimizer in cases(optimizers).values():
        assert optimizer.init.__doc__ and optimizer.update.__doc__.startswith("Transform gradients into updates")
    assert all((schedule.__doc__ or "").endswith(".") for schedule in SCHEDULES)
    foreign = optimizers.GradientTransformation(lambda params: (), lambda updates, state, params=None: (updates, state))
    optimizers.chain(foreign)
    optimizers.with_extra_args_support(foreign)
    assert foreign.init.__doc__ is None and foreign.update.__doc__ is None
