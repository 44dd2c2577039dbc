"""Errors for names that are not there: they name what is meant, or where it is."""

import contextlib
import copy
import importlib
import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

import tapeless
import tapeless as tl
import tapeless.numpy as tnp

MORE = "\n  The page 'Coming from PyTorch' of the documentation has more."
CONVOLUTION = (
    "Write tl.lax.conv_general_dilated(x, w, strides, padding), of x [batch, channels, ..] and w [out, in, ..]." + MORE
)
ATTENTION = (
    "Write tl.nn.dot_product_attention(query, key, value): its axes are [batch, time, heads, features], "
    "where PyTorch's are [batch, heads, time, features]." + MORE
)
CLIPPING = "Write tl.optimizers.chain(tl.optimizers.clip_by_global_norm(1.0), optimizer)." + MORE
ADVICE = {
    "tapeless.gradient": "Do you mean tl.grad?",
    "tapeless.compile": "Do you mean tl.jit?",
    "tapeless.tree_map": "Do you mean tl.tree.map?",
    "tapeless.sin": "It is tnp.sin.",
    "tapeless.relu": "It is tl.nn.relu.",
    "tapeless.vmapp": "Do you mean tl.vmap?",
    "tapeless.numpy.random": "It is tl.random.",
    "tapeless.numpy.arrange": "Do you mean tnp.arange?",
    "tapeless.numpy.trapz": "Do you mean tnp.trapezoid?",
    "tapeless.numpy.logsumexp": "It is tl.nn.logsumexp.",
    "tapeless.random.uniforme": "Do you mean tl.random.uniform?",
    "tapeless.random.seed": "Do you mean tl.random.key?",
    "tapeless.tree.maps": "Do you mean tl.tree.map?",
    "tapeless.lax.scn": "Do you mean tl.lax.scan?",
    "tapeless.nn.initializers.he_norml": "Do you mean tl.nn.initializers.he_normal?",
    "tapeless.numpy.linalg.schur": "It is tl.scipy.linalg.schur.",
    "tapeless.nn.Conv2d": CONVOLUTION,
    "tapeless.nn.conv2d": CONVOLUTION,
    "tapeless.nn.scaled_dot_product_attention": ATTENTION,
    "tapeless.optimizers.clip_grad_norm_": CLIPPING,
    "tapeless.profiler.trce": "Do you mean tl.profiler.trace?",
    "tapeless.scipy.integrate.trapezoids": "Do you mean tl.scipy.integrate.trapezoid?",
    "tapeless.dlpack.from_numpy": "Do you mean tnp.asarray?",
    "tapeless.nothing": "If JAX has it, it is not there yet: see the page 'Coverage' of the documentation.",
}


@pytest.mark.parametrize("wanted", ADVICE)
def test_the_error_says_what_is_meant(wanted):
    module, _, name = wanted.rpartition(".")
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(module), name)
    assert str(caught.value) == f"module {module!r} has no attribute {name!r}.\n  {ADVICE[wanted]}"


def test_what_is_advised_is_there():
    tables = importlib.import_module("tapeless.tracer.advice.missing_names")
    for advice in [*tables._MEANT.values(), *tables._MEANT_OF_ARRAY.values()]:
        path = re.split(r"[,:(]", advice)[0]
        if path.startswith(("x", "functions", "numpy")):
            continue
        found = {"tl": tapeless, "tnp": tapeless.numpy}[path.split(".")[0]]
        for name in path.split(".")[1:]:
            found = getattr(found, name)


def test_what_is_written_for_others_is_there():
    """And no name in a table is one of ours: it would be found first, or hide it."""
    tables = importlib.import_module("tapeless.tracer.advice.missing_names")
    assert len(tables.SUBSTITUTES) > 400 and not tables.SUBSTITUTES.keys() & (tables.PYTORCH.keys() | tables._MEANT)
    texts = " ".join([*tables.PYTORCH.values(), *tables.SUBSTITUTES.values()])
    for path in set(re.findall(r"\b(?:tl|tnp)(?:\.\w+)+", texts)):
        found = {"tl": tapeless, "tnp": tapeless.numpy}[path.split(".")[0]]
        for name in path.split(".")[1:]:
            found = getattr(found, name)
    ours = {name for space in (*tables.NAMESPACES, *tables._OTHERS) for name in tables._names(space)}
    assert not ours & tables.SUBSTITUTES.keys()


X, Y = np.array([0.1, 0.7, 0.4, 0.9]), np.array([1.0, 3.0, 2.0, 5.0])
A, SPD = np.array([[0.3, 0.1], [0.2, 0.4]]), np.array([[2.0, 0.5], [0.5, 1.0]])
# Expressions of the tables are computed: of these names and values, what SciPy or PyTorch has for them.
COMPUTED = {
    "cumulative_trapezoid": ({"x": X, "y": Y}, [1.2, 0.45, 2.2]),
    "pearsonr": ({"x": X, "y": Y}, np.corrcoef(X, Y)[0, 1]),
    "zscore": ({"x": X}, (X - X.mean()) / X.std()),
    "gmean": ({"x": X}, np.prod(X) ** 0.25),
    "iqr": ({"x": X}, [0.425]),
    "entropy": ({"p": X / X.sum()}, -(X / X.sum() * np.log(X / X.sum())).sum()),
    "solve_circulant": ({"c": X, "b": Y}, np.linalg.solve(scipy.linalg.circulant(X), Y)),
    "solve_discrete_lyapunov": ({"a": A, "q": SPD, "n": 2}, scipy.linalg.solve_discrete_lyapunov(A, SPD)),
    "solve_lyapunov": ({"a": A, "q": SPD}, scipy.linalg.solve_continuous_lyapunov(A, SPD)),
    "logm": ({"a": A}, scipy.linalg.logm(A)),
    "erfcinv": ({"x": X}, scipy.special.erfcinv(X)),
    "perm": ({"n": 7.0, "k": 3.0}, 210),
    "exprel": ({"x": X}, scipy.special.exprel(X)),
    "linregress": ({"x": X, "y": Y}, np.polyfit(X, Y, 1)),
    "lagrange": ({"x": X, "y": Y, "new": X}, Y),
    "unique_consecutive": ({"x": np.array([1, 1, 2, 1, 1])}, [1, 2, 1]),
    "cartesian_prod": ({"xs": [np.arange(2), np.arange(2)]}, [[0, 0], [0, 1], [1, 0], [1, 1]]),
    "combinations": ({"x": X[:3]}, [[0.1, 0.7], [0.1, 0.4], [0.7, 0.4]]),
    "cholesky_inverse": ({"c": np.linalg.cholesky(SPD), "n": 2}, np.linalg.inv(SPD)),
    "logdet": ({"a": SPD}, np.log(1.75)),
    "hvp": ({"f": lambda x: (x**3).sum(), "x": X, "v": Y}, 6 * X * Y),
    "vhp": ({"f": lambda x: (x**3).sum(), "x": X, "v": Y}, 6 * X * Y),
    "find_peaks": ({"x": X}, [1]),
    "pixel_shuffle": (
        {"x": np.arange(4).reshape(1, 4, 1, 1), "b": 1, "c": 1, "r": 2, "h": 1, "w": 1},
        [[[[0, 1], [2, 3]]]],
    ),
    "wasserstein_distance": ({"x": X, "y": Y}, scipy.stats.wasserstein_distance(X, Y)),
    "csr_matrix": (
        {"values": Y, "x": X[:2], "rows": np.array([0, 1, 1, 2]), "columns": np.array([0, 0, 1, 1]), "n": 3},
        None,
    ),
}


def _expression(text):
    """The first part of a text that is an expression: up to a comma, or to the end."""
    for end in [*[m.start() for m in re.finditer(",", text)], len(text)]:
        with contextlib.suppress(SyntaxError):
            return compile(text[:end].rpartition(" is ")[2], "", "eval")
    raise AssertionError(text)


@pytest.mark.parametrize("name", COMPUTED)
def test_what_is_written_for_others_computes_it(name):
    values, want = COMPUTED[name]
    tables = importlib.import_module("tapeless.tracer.advice.missing_names")
    found = eval(_expression(tables.SUBSTITUTES[name]), {"tl": tl, "tnp": tnp, **values})
    want = [Y[0] * X[0], Y[1] * X[0] + Y[2] * X[1], Y[3] * X[1]] if want is None else want
    np.testing.assert_allclose(found, want, rtol=1e-5)  # circulant systems by the transform, of float32 constants


SAID = {
    "tapeless.spsolve": "Write tl.scipy.sparse.linalg.cg(matvec, b), or ",
    "tapeless.scipy.sparse.linalg.spsolve": "Write tl.scipy.sparse.linalg.cg(matvec, b), or ",
    "tapeless.scipy.integrate.solve_ivp": "Write tl.experimental.ode.odeint(f, y0, t), of f(y, t)",
    "tapeless.scipy.integrate.quad": "Write tnp.sum(weights * f(nodes)), with nodes and weights of ",
    "tapeless.scipy.optimize.root": "Write Newton's method, x - tnp.linalg.solve(tl.jacfwd(f)(x), f(x)), in ",
    "tapeless.scipy.optimize.least_squares": "Write steps p - tnp.linalg.solve(J.T @ J + damping * ",
    "tapeless.scipy.optimize.curve_fit": "Write steps p - tnp.linalg.solve(J.T @ J + damping * ",
    "tapeless.scipy.interpolate.CubicSpline": "Write tnp.interp(x, xs, ys), which is linear; a cubic spline ",
    "tapeless.odeint": "It is tl.experimental.ode.odeint.",
    "tapeless.minimize": "It is tl.scipy.optimize.minimize.",
    "tapeless.Rotation": "It is tl.scipy.spatial.transform.Rotation.",
    "tapeless.nn.DataParallel": "Write tl.vmap over the axis of the devices: a program runs on one device",
    "tapeless.shard_map": "Write tl.vmap over the axis of the devices: a program runs on one device",
    "tapeless.sharding.Mesh": "Write tl.vmap over the axis of the devices: a program runs on one device",
    "tapeless.experimental.shard_map": "Write tl.vmap over the axis of the devices: a program runs on one device",
    "tapeless.numpy.in1d": "Write tnp.isin.",
    "tapeless.optax": "Write tl.optimizers; optax itself runs inside of `with tl.as_jax():`.",
}


@pytest.mark.parametrize("wanted", SAID)
def test_names_of_others_say_what_to_write(wanted):
    module, _, name = wanted.rpartition(".")
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(module), name)
    assert str(caught.value).startswith(f"module {module!r} has no attribute {name!r}.\n  {SAID[wanted]}")


PYTORCH = """
nn.Module nn.Linear nn.Conv2d nn.conv2d nn.functional nn.max_pool2d nn.avg_pool2d nn.BatchNorm1d nn.BatchNorm2d
nn.dropout nn.Dropout nn.layer_norm nn.LayerNorm nn.cross_entropy nn.nll_loss nn.mse_loss nn.Embedding nn.embedding
nn.linear nn.Parameter nn.Sequential nn.MultiheadAttention nn.LSTM nn.GRU nn.Transformer nn.TransformerEncoderLayer
nn.ReLU nn.CrossEntropyLoss nn.init optim amp autocast lr_scheduler set_grad_enabled no_grad is_tensor utils
set_num_threads optimizers.MultiSteps optimizers.CosineAnnealingLR optimizers.StepLR optimizers.clip_grad_norm_
optimizers.apply_if_finite optimizers.inject_hyperparams optimizers.multi_transform random.randperm random.dropout
optimizers.ema optimizers.incremental_update nn.utils
numpy.masked_fill numpy.clamp numpy.mm numpy.chunk numpy.randn_like multinomial
""".split()


@pytest.mark.parametrize("name", PYTORCH)
def test_names_of_pytorch_and_optax_say_what_to_write(name):
    module, _, last = f"tapeless.{name}".rpartition(".")
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(module), last)
    assert str(caught.value).startswith(f"module {module!r} has no attribute {last!r}.\n  Write ")
    assert str(caught.value).endswith(MORE)


def test_an_optimizer_has_no_steps():
    optimizer = tl.optimizers.adam(1e-3)
    with pytest.raises(AttributeError) as caught:
        optimizer.step()  # pyright: ignore[reportAttributeAccessIssue]  # which is the test
    assert str(caught.value) == (
        "an optimizer has no attribute 'step': it is a pair of functions, init and update.\n"
        "  Write updates, state = optimizer.update(gradient, state, params), then "
        "params = tl.optimizers.apply_updates(params, updates)."
    )
    assert not hasattr(optimizer, "zero_grad") and copy.deepcopy(optimizer) == optimizer


@pytest.mark.parametrize(
    "statement, advice",
    [
        ("from tapeless.interpreters import ad", "What jax.interpreters.ad offers is tl.extend.ad."),
        ("from tapeless import test_util", "Do you mean tl.testing?"),
        ("from tapeless.numpy import arange, gradiant", "Do you mean tnp.gradient?"),
    ],
)
def test_imports_of_names_say_what_is_meant(statement, advice):
    with pytest.raises(ImportError) as caught:
        exec(statement)
    assert str(caught.value).endswith(f"\n  {advice}")
    assert not hasattr(tl.interpreters, "ad") and not hasattr(tl, "test_util")


def test_python_adds_no_suggestion_of_its_own():
    code = "import tapeless\ntapeless.nn.sofmax"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Do you mean tl.nn.softmax?" in done.stderr and "Did you mean" not in done.stderr


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("backward", "\n  Do you mean tl.grad(f)(x)?"),
        ("add_", "\n  Arrays are never changed in place: write x = x + y, or x = x.at[index].add(y)."),
        ("exp", "\n  Do you mean tnp.exp(x)?"),
        ("sigmoid", "\n  Do you mean tl.nn.sigmoid(x)?"),
        ("gather", "\n  Do you mean tnp.take_along_axis(x, indices, axis)?"),
        ("numel", "\n  Do you mean x.size?"),
        ("clamp", "\n  Do you mean tnp.clip(x, low, high), where None is no bound?"),
        (
            "requires_grad_",
            "\n  Do you mean tl.grad(f, argnums): functions are differentiated, in the arguments that are named?",
        ),
        (
            "register_hook",
            "\n  Do you mean tl.custom_vjp, for a function whose backward pass changes or prints the cotangent?",
        ),
        ("t", "\n  Do you mean x.T?"),
        ("mm", "\n  Do you mean x @ y?"),
        ("chunk", "\n  Do you mean tnp.split(x, parts, axis)?"),
        ("nonsense", ""),
        ("_private", ""),
    ],
)
@pytest.mark.parametrize("of", [lambda f: f(tnp.ones(3)), lambda f: tl.jit(f)(tnp.ones(3))])
def test_missing_attributes_of_arrays_name_what_is_meant(of, name, advice):
    with pytest.raises(AttributeError) as caught:
        of(lambda x: getattr(x, name))
    assert str(caught.value) == f"an array has no attribute {name!r}.{advice}"
