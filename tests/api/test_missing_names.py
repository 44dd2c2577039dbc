"""Errors for names that are not there: they name what is meant, or where it is."""

import importlib
import subprocess
import sys

import pytest

import tapeless

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
    table = importlib.import_module("tapeless.tracer.missing_names")._MEANT
    for advice in table.values():
        path = advice.split(",")[0]
        if path.startswith("x"):
            continue
        found = {"tl": tapeless, "tnp": tapeless.numpy}[path.split(".")[0]]
        for name in path.split(".")[1:]:
            found = getattr(found, name)


def test_python_adds_no_suggestion_of_its_own():
    code = "import tapeless\ntapeless.nn.sofmax"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "Do you mean tl.nn.softmax?" in done.stderr and "Did you mean" not in done.stderr
