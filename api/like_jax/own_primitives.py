"""Primitives of ours by JAX's names, for libraries that look for them in programs, bind them, or have tables of them.

Only those that are JAX's: the same operands, the same results in the same order. Parameters may have other names here,
which `bind` is given by JAX's; of what it passes on, what has no meaning here must have JAX's default.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from tapeless.custom.primitives import OwnPrimitive, Translation
from tapeless.lax import own_primitive_names as names
from tapeless.tracer import dtypes
from tapeless.tracer.core import primitive_named
from tapeless.tracer.jaxpr import ClosedJaxpr, unwrap_program
from tapeless.tracer.primitives.contraction import canonical_precision
from tapeless.tracer.primitives.custom import custom_jvp_p

# ---- what JAX's parameters are here --------------------------------------------------------------------------


def _renamed(defaults: Mapping[str, Any], **names: str) -> tuple[Translation, Translation]:
    """Make translations of parameters, from JAX's to ours and back.

    Args:
      defaults: those without meaning here, and the only value that they may have; ... for any.
      names: others, by JAX's names: their names here.
    """

    def ours(params: dict[str, Any]) -> dict[str, Any]:
        for name, value in params.items():
            if defaults.get(name, ...) not in (..., value):
                raise NotImplementedError(f"bind: {name}={value!r} has no meaning here, only {defaults[name]!r}.")
        return {names.get(name, name): _programs(value) for name, value in params.items() if name not in defaults}

    jaxs = {own: name for name, own in names.items()}
    stated = {name: value for name, value in defaults.items() if value is not ...}

    def theirs(params: dict[str, Any]) -> dict[str, Any]:
        return {jaxs.get(name, name): value for name, value in params.items()} | stated

    return ours, theirs


def _programs(value: Any) -> Any:
    """Return the program of a closed one without constants, and those in a tuple; any other value as it is."""
    if isinstance(value, tuple):
        return tuple(map(_programs, cast("tuple[Any, ...]", value)))
    if not isinstance(value, ClosedJaxpr):
        return value
    program = unwrap_program(value.jaxpr)
    if value.consts:
        raise NotImplementedError(
            f"bind: the program {program.name} closes over constants: make them operands, its first inputs."
        )
    return program


def _of_product(params: dict[str, Any]) -> dict[str, Any]:
    """Make the precision one for each operand."""
    return {**_WITHOUT_SHARDING[0](params), "precision": canonical_precision(params.get("precision"))}


def _of_extreme(params: dict[str, Any]) -> dict[str, Any]:
    (axis,) = params["axes"]
    return {"axis": axis, "index_dtype": dtypes.canonical(params["index_dtype"])}


def _of_extreme_in_jax(params: dict[str, Any]) -> dict[str, Any]:
    return {"axes": (params["axis"],), "index_dtype": params["index_dtype"]}


def _of_slice(params: dict[str, Any]) -> dict[str, Any]:
    return {**params, "strides": params.get("strides") or (1,) * len(params["start_indices"])}


_WITHOUT_SHARDING = _renamed({"out_sharding": None})
# ---- the primitives --------------------------------------------------------------------------------------------

_TRANSLATED: dict[str, tuple[Translation, ...]] = {
    **dict.fromkeys(names.ACCURATE, _renamed({"accuracy": None})),
    **dict.fromkeys(names.SCATTERS, _renamed({"update_jaxpr": ..., "update_consts": ...})),  # they say themselves
    **dict.fromkeys(("argmax", "argmin"), (_of_extreme, _of_extreme_in_jax)),
    "bitcast_convert_type": _renamed({}, new_dtype="dtype"),
    "broadcast_in_dim": _renamed({"sharding": None}, broadcast_dimensions="dims"),
    "cond": _renamed({}),
    "conj": _renamed({"input_dtype": ...}),
    "conv_general_dilated": (_of_product, _WITHOUT_SHARDING[1]),
    "convert_element_type": _renamed({"sharding": None}, new_dtype="dtype"),
    "dce_sink": _renamed({"prevent_mlir_dce": False}),
    "dot_general": (_of_product, _WITHOUT_SHARDING[1]),
    "eig": _renamed(
        {"implementation": None},
        compute_left_eigenvectors="left",
        compute_right_eigenvectors="right",
        enable_eigvec_derivs="vector_derivatives",
    ),
    "iota": _renamed({"sharding": None}),
    "mul": _renamed({"out_dtype": None}),
    "qr": _renamed({"use_magma": None}),
    "scan": _renamed({}, num_consts="n_consts", num_carry="n_carry"),
    "reduce_sum": _WITHOUT_SHARDING,
    "reshape": _renamed({"dimensions": None, "sharding": None}, new_sizes="shape"),
    "rng_bit_generator": _WITHOUT_SHARDING,
    "slice": (_of_slice,),
    "triangular_solve": _renamed({"conjugate_a": False}),
    "while": _renamed({}, cond_jaxpr="condition", body_jaxpr="body", cond_nconsts="n_condition", body_nconsts="n_body"),
}
_OTHER_NAMES = {"regularized_incomplete_beta": "betainc"}


def _named(name: str) -> OwnPrimitive:
    short = name.removesuffix("_p")
    several = short in (*names.OF_SEVERAL_RESULTS, *names.OF_SEVERAL_FACTORS)
    return OwnPrimitive(primitive_named(_OTHER_NAMES.get(short, short)), several, *_TRANSLATED.get(short, ()))


OWN = {name: _named(name) for name in (*names.IN_LAX, *names.IN_LINALG)}
globals().update(OWN)
OWN_BY_OPERATION: Final = {primitive.operation: primitive for primitive in OWN.values()}
stop_gradient_p: Final = OWN["stop_gradient_p"]
custom_jvp_call_p: Final = OwnPrimitive(custom_jvp_p, multiple_results=True)
