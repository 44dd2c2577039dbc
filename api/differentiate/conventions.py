"""Conventions for derivatives with respect to complex numbers.

Of z = x + i y the bilinear gradient of a real f is ∂f/∂x - i ∂f/∂y, which jvp transposes to; the hermitian one is its
conjugate 2 ∂f/∂conj(z), the direction of ascent. So are pullbacks P: P_hermitian(k) = conj(P_bilinear(conj k)).
"""

from typing import Any

from tapeless.tracer import dtypes, pytree
from tapeless.tracer.primitives.elementwise import conj
from tapeless.tracer.pytree.registry import Partial
from tapeless.tracer.types import aval_of

CONVENTIONS = ("hermitian", "bilinear")


def check_convention(who: str, convention: str) -> None:
    """Check the name of a convention. Raises: ValueError if there is no such convention."""
    if convention not in CONVENTIONS:
        raise ValueError(f"{who}: convention={convention!r} is none of {CONVENTIONS}.")


def in_convention(convention: str, gradient: Any) -> Any:
    """Give a bilinear gradient in a convention."""
    return gradient if convention == "bilinear" else pytree.tree_map(_conjugate, gradient)


def pull_back_in_convention(convention: str, pull_back: Any) -> Any:
    """Give a bilinear pullback in a convention; it stays a pytree."""
    return pull_back if convention == "bilinear" else Partial(_pulled_back, pull_back)


def _pulled_back(pull_back: Any, cotangent: Any) -> Any:
    return pytree.tree_map(_conjugate, pull_back(pytree.tree_map(_conjugate, cotangent)))


def _conjugate(x: Any) -> Any:
    return conj(x) if dtypes.is_complex(aval_of(x).dtype) else x
