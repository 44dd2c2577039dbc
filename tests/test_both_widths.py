"""Every public function runs under both default widths, with results of the same dtypes eagerly and in `jit`."""

import importlib
import inspect

import pytest

from tests.both_widths import Widths, computed_by_oracle, problem, problem_of_docstring
from tests.pages import hook
from tests.test_reference import PAGES, _docstrings

examples = hook("example_calls")
NAMESPACES = dict.fromkeys([*examples.TEXTS, *examples.library_examples.TEXTS, *PAGES])
WIDE = Widths(64)
NARROW = (Widths(32), Widths(32, numpy_bits=32))  # of arrays, and of NumPy arrays of 64 bits: half of the names each


@pytest.fixture(scope="module", autouse=True)
def _by_oracle():
    with computed_by_oracle():
        yield


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_calls_run_and_have_the_dtypes_of_jit(namespace: str):
    calls = [(f"{namespace}.{name}", text, i) for i, (name, text) in enumerate(examples.calls(namespace).items())]
    narrow = namespace != "tapeless.random"  # whose samplers have tests of their own under 32 bits, and take long
    found = [problem(name, text, each) for name, text, i in calls for each in (WIDE, NARROW[i % 2])[: 1 + narrow]]
    assert not any(found), "\n".join(filter(None, found))


@pytest.mark.parametrize("namespace", PAGES)
def test_examples_in_docstrings_run_under_64_bits(namespace: str):
    """Their results under 32 bits are those that the docstrings show: test_reference.py."""
    public = importlib.import_module(namespace)
    found: list[str] = []
    for name, text in _docstrings(public):
        if name != "load":  # needs an executable
            names = {**vars(inspect.getmodule(getattr(public, name)) or public), name: getattr(public, name)}
            found.append(problem_of_docstring(f"{namespace}.{name}", text, names, WIDE))
    assert not any(found), "\n".join(filter(None, found))


@pytest.mark.parametrize("bits", [32, 64])
def test_exchanges_are_of_32_bits_under_both(bits: int):
    calls = examples.calls("tapeless.lax.linalg") | examples.calls("tapeless.scipy.linalg")
    for name in ("lu_pivots_to_permutation", "lu_solve"):
        assert problem(name, calls[name], Widths(bits)) == ""
