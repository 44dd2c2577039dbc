"""Functions of ours by the names of primitives of JAX's, for libraries that bind these or import them.

Here they are made of other primitives, or the primitive by that name has other parameters, or its results another
order. `bind` takes JAX's parameters; those that have no meaning here must have JAX's default.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from tapeless.batch import collectives, user_reductions
from tapeless.batch.vmap import vmap
from tapeless.compile.placement import device_put
from tapeless.custom.primitives import FunctionPrimitive
from tapeless.lax import elements, householder, matrix_functions, shapes
from tapeless.lax import own_primitive_names as names
from tapeless.random import gamma, loggamma
from tapeless.tracer import dtypes
from tapeless.tracer.jaxpr import ClosedJaxpr, eval_jaxpr
from tapeless.tracer.primitives import elementwise, indexing, shape, sorting, spectral, windows
from tapeless.tracer.primitives.bits import bitcast_convert_type
from tapeless.tracer.types import aval_of

# ---- elements ------------------------------------------------------------------------------------------------


def _approx_top_k(x: Any, /, *, is_max_k: bool, **params: Any) -> Any:
    return (elements.approx_max_k if is_max_k else elements.approx_min_k)(x, **params)


def _in_total_order(compare: Callable[..., Any]) -> Callable[..., Any]:
    """A comparison in which -0.0 is less than 0.0, -nan the least and nan the greatest; of numbers without these, the
    usual one. Source: IEEE 754-2019, section 5.10."""
    return lambda x, y: compare(_rank(x), _rank(y))


def _rank(x: Any) -> Any:
    """Map floating point numbers to integers in their total order. Raises: TypeError for complex numbers."""
    dtype = aval_of(x).dtype
    if dtypes.is_complex(dtype):
        raise TypeError(f"complex numbers have no order: {aval_of(x)}.")
    if not dtypes.is_float(dtype):
        return x
    bits: Any = bitcast_convert_type(x, np.dtype(f"int{dtypes.bits_of(dtype)}"))
    greatest = np.array(np.iinfo(bits.dtype).max, bits.dtype)
    return elementwise.select(bits < 0, bits ^ greatest, bits)


def _scatter_sub(x: Any, indices: Any, updates: Any, /, *, update_jaxpr: Any, update_consts: Any, **params: Any) -> Any:
    return indexing.scatter_sub(x, indices, updates, **params)


# ---- windows -------------------------------------------------------------------------------------------------


def _reduce(*args: Any, computation: Any, jaxpr: ClosedJaxpr, dimensions: Any, out_sharding: Any = None) -> Any:
    n = len(args) // 2
    combine = _combining(jaxpr.jaxpr, jaxpr.consts, n)
    return user_reductions.reduce(args[:n], args[n:], combine, dimensions, out_sharding)


def _reduce_window(*args: Any, jaxpr: Any, consts: Any, **window: Any) -> Any:
    n = len(args) // 2
    return user_reductions.reduce_window(args[:n], args[n:], _combining(jaxpr, consts, n), **window)


def _combining(jaxpr: Any, consts: Any, n: int) -> Callable[..., Any]:
    """Make the function of two tuples of n scalars whose program is given."""
    return lambda xs, ys: eval_jaxpr(jaxpr, [*consts, *xs, *ys])


def _at_extremes(function: Callable[..., Any]) -> Callable[..., Any]:
    def found(
        x: Any,
        operand: Any,
        /,
        *,
        select_prim: Any,
        base_dilation: Any = None,
        window_dilation: Any = None,
        **window: Any,
    ) -> Any:
        if {*(base_dilation or ()), *(window_dilation or ())} - {1}:
            raise NotImplementedError(f"bind: windows with dilation {base_dilation} and {window_dilation}.")
        return function(x, operand, select_prim.name, **window)

    return found


# ---- examples of a named axis --------------------------------------------------------------------------------


def _across(reduce: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *, axes, axis_index_groups=None: reduce(x, axes, axis_index_groups=axis_index_groups)


def _all_gather(x: Any, /, *, all_gather_dimension: int, axis_name: Any, axis_size: int, **params: Any) -> Any:
    return collectives.all_gather(x, axis_name, axis=all_gather_dimension, **params)


# ---- matrices ------------------------------------------------------------------------------------------------


def _eigh(x: Any, /, *, algorithm: Any, **params: Any) -> Any:
    return spectral.eigh(x, symmetrize_input=False, implementation=algorithm, **params)


def _svd(x: Any, /, **params: Any) -> Any:
    found = spectral.svd(x, **params)
    if not params["compute_uv"]:
        return (found,)
    u, s, vh = found
    return s, u, vh


# ---- others --------------------------------------------------------------------------------------------------


def _random_gamma(keys: Any, a: Any, *, log_space: bool) -> Any:
    """Draw for each of the keys [k..] gamma numbers, or their logarithms, of parameters a [k.., ..]."""
    sampler = loggamma if log_space else gamma
    draw: Any = partial(sampler, dtype=aval_of(a).dtype)
    for _ in aval_of(keys).shape:
        draw = vmap(draw)
    return draw(keys, a)


def _device_put(*xs: Any, devices: Any, srcs: Any, copy_semantics: Any) -> Any:
    return [device_put(x, device) for x, device in zip(xs, devices, strict=True)]


_ONE: dict[str, Callable[..., Any]] = {
    "all_gather": _all_gather,
    "all_to_all": collectives.all_to_all,
    "axis_index": collectives.axis_index,
    "cholesky_update": matrix_functions.cholesky_update,
    "eq_to": _in_total_order(elementwise.eq),
    "householder_product": householder.householder_product,
    "le_to": _in_total_order(elementwise.le),
    "lt_to": _in_total_order(elementwise.lt),
    "lu_pivots_to_permutation": matrix_functions.lu_pivots_to_permutation,
    "mulhi": elements.mulhi,
    "ormqr": householder.ormqr,
    "pmax": _across(collectives.pmax),
    "pmin": _across(collectives.pmin),
    "ppermute": collectives.ppermute,
    "psum": _across(collectives.psum),
    "random_gamma": _random_gamma,
    "scatter_sub": _scatter_sub,
    "select_and_gather_add": _at_extremes(windows.select_and_gather_add),
    "select_and_scatter_add": _at_extremes(windows.select_and_scatter_add),
    "squeeze": shape.squeeze,
    "stack": lambda *xs, axis: shapes.stack(xs, axis),
    "stage": shapes.stage,
    "symmetric_product": partial(matrix_functions.symmetric_product, symmetrize_output=False),
    "tile": shape.tile,
}
_SEVERAL: dict[str, Callable[..., Any]] = {
    "approx_top_k": _approx_top_k,
    "device_put": _device_put,
    "eigh": _eigh,
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "svd": _svd,
    "top_k": sorting.top_k,
    "unstack": shapes.unstack,
}

FUNCTIONS = {
    f"{name}_p": FunctionPrimitive(name, function, several)
    for several, table in ((False, _ONE), (True, _SEVERAL))
    for name, function in table.items()
}
globals().update({name: FUNCTIONS[name] for name in (*names.FUNCTIONS_IN_LAX, *names.FUNCTIONS_IN_LINALG)})
random_gamma_p: Final = FUNCTIONS["random_gamma_p"]
