"""Tangents and cotangents as users give and get them: of the types that their primals ask for, zeros instantiated."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tapeless.arguments.argument_checks import check_arrays
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.lowering.array import device_put
from tapeless.tracer import core, dtypes, pytree
from tapeless.tracer.advice import widths
from tapeless.tracer.array import Array
from tapeless.tracer.primitives.elementwise import conj, convert_element_type
from tapeless.tracer.primitives.operands import constant
from tapeless.tracer.pytree.registry import Partial
from tapeless.tracer.rule_arguments import as_argument
from tapeless.tracer.types import ShapedArray, aval_of, holds_keys, is_arraylike


def tangent(primal: ShapedArray, t: Any, who: str) -> Any:
    """Check the tangent `t` of a primal: a value or Zero. Raises: TypeError if its type is not the tangent type."""
    if type(t) is Zero:
        return t
    want = primal.tangent()
    if want.dtype == dtypes.float0:
        if getattr(t, "dtype", None) == dtypes.float0:
            return Zero(want)
        kind = "that is a key" if holds_keys(primal) else "of integer type"
        raise TypeError(f"{who} belongs to a primal {kind}, {primal}: it must be of dtype float0, not {t!r}.")
    return direction(t, want, who, f"the primal {primal}")


def tangents_of(avals: Sequence[ShapedArray], given: Sequence[Any], who: Callable[[int], str]) -> list[Any]:
    """Check the tangents of primals, as `tangent` does; `who` names one of them by its number, for messages."""
    with suppress(TypeError):
        return [tangent(aval, t, "") for aval, t in zip(avals, given, strict=True)]
    return [tangent(aval, t, who(i)) for i, (aval, t) in enumerate(zip(avals, given, strict=True))]


def direction(t: Any, want: ShapedArray, who: str, of: str) -> Any:
    """Convert `t` as `convert_tangent` does. Raises: TypeError also for an integer, which is no tangent of a float."""
    if is_arraylike(t) and not dtypes.is_inexact(aval_of(t).dtype):
        raise TypeError(f"{who} is {aval_of(t)}, but {of} asks for {want}.")
    return convert_tangent(t, want, who, of)


def convert_tangent(t: Any, want: ShapedArray, who: str, of: str) -> Any:
    """Convert `t`, a number or a weakly typed array, to the type `want`. Raises: TypeError naming both types."""
    if isinstance(t, (bool, int, float, complex)) and not want.shape:
        return constant(t, want)
    check_arrays(f"{who}{{}}", t)
    have = aval_of(t)
    if have.weak_type and have.shape == want.shape and dtypes.is_complex(have.dtype) <= dtypes.is_complex(want.dtype):
        return t if have.dtype == want.dtype else convert_element_type(t, want.dtype)
    if have.shape != want.shape or have.dtype != want.dtype:
        told = f"{who} is {have}, but {of} asks for {want}."
        from_numpy = isinstance(t, np.ndarray) and widths.are_mixed([have.dtype, want.dtype])
        raise TypeError(told + (widths.advice([t]) if from_numpy else ""))
    return t


def instantiate_tangents(tangents: Sequence[Any]) -> list[Any]:
    """Make arrays of tangents, `Zero` among them."""
    return [own_array(instantiate(t)) for t in tangents]


def own_array(x: Any) -> Any:
    """Copy a number or a NumPy array to an array of ours; x stays if its dtype is float0.

    While tracing a number is on no device, and a literal of the program; a user's NumPy array stays.
    """
    if isinstance(x, Array) or getattr(x, "dtype", None) == dtypes.float0:
        return x
    if core.is_evaluating():
        return device_put(x)
    return x if type(x) is np.ndarray and x.ndim else as_argument(x)


# ---- conventions of complex derivatives ----------------------------------------------------------------------
# Conventions for derivatives with respect to complex numbers.
#
# Of z = x + i y the bilinear gradient of a real f is ∂f/∂x - i ∂f/∂y, which jvp transposes to; the hermitian one is
# its conjugate 2 ∂f/∂conj(z), the direction of ascent. So are pullbacks P: P_hermitian(k) = conj(P_bilinear(conj k)).


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
