"""Primitives of ours by JAX's names, for libraries that look for them in programs, bind them, or have tables of them.

Only those that are JAX's: the same operands, the same results in the same order. Parameters may have other names here,
which `bind` is given by JAX's; of what it passes on, what has no meaning here must have JAX's default.
"""

from collections.abc import Mapping
from typing import Any, Final

from tapeless.custom import own_primitive_names as names
from tapeless.custom.primitives import OwnPrimitive, Translation
from tapeless.tracer import dtypes
from tapeless.tracer.core import primitive_named
from tapeless.tracer.primitives.contraction import canonical_precision
from tapeless.tracer.primitives.custom import custom_jvp_p

# ---- what JAX's parameters are here --------------------------------------------------------------------------


def _renamed(defaults: Mapping[str, Any], **names: str) -> Translation:
    """Make a translation of parameters.

    Args:
      defaults: those that have no meaning here, and the only value that they may have; ... for any.
      names: others, by JAX's names: their names here.
    """

    def ours(params: dict[str, Any]) -> dict[str, Any]:
        for name, value in params.items():
            if defaults.get(name, ...) not in (..., value):
                raise NotImplementedError(f"bind: {name}={value!r} has no meaning here, only {defaults[name]!r}.")
        return {names.get(name, name): value for name, value in params.items() if name not in defaults}

    return ours


def _of_product(params: dict[str, Any]) -> dict[str, Any]:
    """Make the precision one for each operand."""
    return {**_WITHOUT_SHARDING(params), "precision": canonical_precision(params.get("precision"))}


def _of_extreme(params: dict[str, Any]) -> dict[str, Any]:
    (axis,) = params["axes"]
    return {"axis": axis, "index_dtype": dtypes.canonical(params["index_dtype"])}


def _of_slice(params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "strides": params.get("strides") or (1,) * len(params["start_indices"])}


_WITHOUT_SHARDING = _renamed({"out_sharding": None})
# ---- the primitives --------------------------------------------------------------------------------------------

_TRANSLATED: dict[str, Translation] = {
    **dict.fromkeys(names.ACCURATE, _renamed({"accuracy": None})),
    **dict.fromkeys(names.SCATTERS, _renamed({"update_jaxpr": ..., "update_consts": ...})),  # they say themselves
    **dict.fromkeys(("argmax", "argmin"), _of_extreme),
    "bitcast_convert_type": _renamed({}, new_dtype="dtype"),
    "broadcast_in_dim": _renamed({"sharding": None}, broadcast_dimensions="dims"),
    "conj": _renamed({"input_dtype": ...}),
    "conv_general_dilated": _of_product,
    "convert_element_type": _renamed({"sharding": None}, new_dtype="dtype"),
    "dce_sink": _renamed({"prevent_mlir_dce": False}),
    "dot_general": _of_product,
    "eig": _renamed(
        {"implementation": None},
        compute_left_eigenvectors="left",
        compute_right_eigenvectors="right",
        enable_eigvec_derivs="vector_derivatives",
    ),
    "iota": _renamed({"sharding": None}),
    "mul": _renamed({"out_dtype": None}),
    "qr": _renamed({"use_magma": None}),
    "reduce_sum": _WITHOUT_SHARDING,
    "reshape": _renamed({"dimensions": None, "sharding": None}, new_sizes="shape"),
    "rng_bit_generator": _WITHOUT_SHARDING,
    "slice": _of_slice,
    "triangular_solve": _renamed({"conjugate_a": False}),
}
_OTHER_NAMES = {"regularized_incomplete_beta": "betainc"}


def _named(name: str) -> OwnPrimitive:
    short = name.removesuffix("_p")
    several = short in (*names.OF_SEVERAL_RESULTS, *names.OF_SEVERAL_FACTORS)
    return OwnPrimitive(primitive_named(_OTHER_NAMES.get(short, short)), several, _TRANSLATED.get(short))


OWN = {name: _named(name) for name in (*names.IN_LAX, *names.IN_LINALG)}
globals().update(OWN)
stop_gradient_p: Final = OWN["stop_gradient_p"]
custom_jvp_call_p: Final = OwnPrimitive(custom_jvp_p, multiple_results=True)
