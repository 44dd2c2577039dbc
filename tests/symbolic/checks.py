"""Formulas against numbers: `tl.grad` of the same function, and the source for NumPy run by itself."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tapeless as tl
from tapeless import index as ix

Formulas = Any


def random(rng: np.random.Generator, shape: Sequence[int], is_complex: bool = True) -> Any:
    x = rng.standard_normal(tuple(shape))
    return x + 1j * rng.standard_normal(tuple(shape)) if is_complex else x


def hermitian(rng: np.random.Generator, n: int) -> Any:
    x = random(rng, (n, n))
    return x + x.conj().T


def gradient(f: Callable[..., Any], argnums: int, args: Sequence[Any]) -> Any:
    """2 df/dconj(z) of the real part of f, by `tl.grad`."""
    return np.asarray(tl.jit(tl.grad(lambda *xs: tl.numpy.real(f(*xs)), argnums=argnums))(*args)).conj()


def run_source(formula: Formulas, *args: Any, **others: Any) -> Any:
    """Run the source of a formula in a namespace that has nothing else."""
    namespace: dict[str, Any] = {}
    exec(formula.numpy(), namespace)
    function = namespace["gradient" if "gradient" in namespace else "derivative"]
    return function(*args, **others)


def check(f: Callable[..., Any], argnums: int, args: Sequence[Any], spaces: Sequence[Any]) -> Formulas:
    """Derive the gradient, simplify it, and compare all forms of it with `tl.grad`. Returns: the simplified form."""
    expected = gradient(f, argnums, args)
    derived = ix.grad(f, argnums)(*spaces)
    simple = derived.simplify()
    forms = [derived, simple, derived.expand(), simple.expand(), derived.expand().simplify()]
    bilinear = ix.grad(f, argnums, convention="bilinear")(*spaces).simplify()
    *values, of_bilinear = tl.jit(lambda *xs: [form(*xs) for form in (*forms, bilinear)])(*args)
    for form, value in zip(forms, values, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-10, err_msg=form.text())
        np.testing.assert_allclose(run_source(form, *args), expected, rtol=1e-10, atol=1e-10, err_msg=form.numpy())
    np.testing.assert_allclose(of_bilinear, expected.conj(), rtol=1e-10, atol=1e-10)
    return simple
