"""Errors for names that are not there: they name what is meant, or where it is."""

import importlib
import re
import subprocess
import sys

import pytest

import tapeless
import tapeless as tl
import tapeless.numpy as tnp

ADVICE = {
    "tapeless.gradient": "Do you mean tl.grad?",
    "tapeless.tree_map": "Do you mean tl.tree.map?",
    "tapeless.sin": "It is tnp.sin.",
    "tapeless.relu": "It is tl.nn.relu.",
    "tapeless.vmapp": "Do you mean tl.vmap?",
    "tapeless.numpy.random": "It is tl.random.",
    "tapeless.numpy.arrange": "Do you mean tnp.arange?",
    "tapeless.numpy.logsumexp": "It is tl.nn.logsumexp.",
    "tapeless.random.uniforme": "Do you mean tl.random.uniform?",
    "tapeless.random.seed": "Do you mean tl.random.key?",
    "tapeless.tree.maps": "Do you mean tl.tree.map?",
    "tapeless.lax.scn": "Do you mean tl.lax.scan?",
    "tapeless.nn.initializers.he_norml": "Do you mean tl.nn.initializers.he_normal?",
    "tapeless.numpy.linalg.schur": "It is tl.scipy.linalg.schur.",
    "tapeless.profiler.trce": "Do you mean tl.profiler.trace?",
    "tapeless.scipy.integrate.trapezoids": "Do you mean tl.scipy.integrate.trapezoid?",
    "tapeless.dlpack.from_numpy": "Do you mean tnp.asarray?",
    "tapeless.nothing": "If JAX has it, it is not there yet: see 'Not supported yet' in the README.",
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
        ("nonsense", ""),
        ("_private", ""),
    ],
)
@pytest.mark.parametrize("of", [lambda f: f(tnp.ones(3)), lambda f: tl.jit(f)(tnp.ones(3))])
def test_missing_attributes_of_arrays_name_what_is_meant(of, name, advice):
    with pytest.raises(AttributeError) as caught:
        of(lambda x: getattr(x, name))
    assert str(caught.value) == f"an array has no attribute {name!r}.{advice}"
