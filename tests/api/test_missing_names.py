"""Errors for names that are not there: they name what is meant, or where it is."""

import copy
import importlib
import re
import subprocess
import sys

import pytest

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
    tables = importlib.import_module("tapeless.tracer.missing_names")
    for advice in [*tables._MEANT.values(), *tables._MEANT_OF_ARRAY.values()]:
        path = re.split(r"[,:(]", advice)[0]
        if path.startswith(("x", "functions", "numpy")):
            continue
        found = {"tl": tapeless, "tnp": tapeless.numpy}[path.split(".")[0]]
        for name in path.split(".")[1:]:
            found = getattr(found, name)


def test_what_is_written_for_pytorch_is_there():
    names = importlib.import_module("tapeless.tracer.pytorch_names").PYTORCH
    for path in re.findall(r"\b(?:tl|tnp)(?:\.\w+)+", " ".join(names.values())):
        found = {"tl": tapeless, "tnp": tapeless.numpy}[path.split(".")[0]]
        for name in path.split(".")[1:]:
            found = getattr(found, name)


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
