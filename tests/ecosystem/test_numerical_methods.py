"""lineax, diffrax, optimistix, jaxopt, blackjax, numpyro and quax, run through `as_jax`: the numbers are JAX's."""

import importlib.util

import pytest

from tests.ecosystem.running import compare_both


@pytest.mark.parametrize(
    ("library", "script"),
    [
        ("lineax", "lineax_solvers.py"),
        ("optimistix", "optimistix_problems.py"),
        ("diffrax", "diffrax_equations.py"),
        ("jaxopt", "jaxopt_problems.py"),
        ("blackjax", "blackjax_samplers.py"),
        ("numpyro", "numpyro_models.py"),
        ("quax", "quax_values.py"),
    ],
)
def test_methods(library: str, script: str):
    """One script, unedited, by both. The library is not imported here: that would bring JAX into this process."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    compare_both(script)
