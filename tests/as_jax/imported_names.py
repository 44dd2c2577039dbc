"""Names that libraries only import: classes without objects say what they are not. Imported inside of `as_jax`."""

from collections.abc import Iterator

import jax
import numpy as np
from jax.example_libraries import stax
from jax.experimental import hijax
from jax.experimental.layout import Layout
from jax.sharding import Mesh, Sharding

import tapeless as tl
from tests.as_jax.facts import LACKING, Fact, refusal


class Effect(jax.extend.core.Effect): ...


class Type(hijax.MutableHiType):
    method = hijax.aval_method(len)
    prop = hijax.aval_property(fget=len)


class Immutable(hijax.HiType): ...


class New(hijax.VJPHiPrimitive): ...


def facts() -> Iterator[Fact]:
    placed = jax.numpy.ones(2).sharding
    yield "a sharding is no Mesh", isinstance(placed, Mesh), False
    yield "a sharding is a Sharding", isinstance(placed, Sharding), True
    yield "Mesh by attributes", Mesh is jax.sharding.Mesh, True
    yield "Mesh | None", bool(Mesh | None), True
    yield "tl.sharding.Mesh", hasattr(tl.sharding, "Mesh"), False
    yield "Layout(None)", refusal(NotImplementedError, Layout, None), f"jax.experimental.layout.Layout: {LACKING}"
    empty = refusal(AttributeError, lambda: Mesh.empty)
    yield "Mesh.empty", empty, f"jax.sharding.Mesh.empty: {LACKING}"
    yield "jax.experimental.layouts", hasattr(jax.experimental, "layouts"), False
    yield "stax.Relu", float(stax.Relu[1]((), -1.0)), 0.0
    yield from dtypes()
    yield from types()


def dtypes() -> Iterator[Fact]:
    f64 = np.dtype("float64")
    functions = {
        "dtypes.canonicalize_dtype": jax.dtypes.canonicalize_dtype,
        "numpy.result_type": jax.numpy.result_type,
        "dtypes.result_type": jax.dtypes.result_type,
    }
    for name, f in functions.items():
        yield f"{name}: float64", [f(x) == np.float32 for x in (f64, "float64", float)], [True] * 3
        yield f"{name}: int8", f("int8") == np.int8, True
        with jax.enable_x64():
            yield f"{name}: float64 under enable_x64", f(f64) == np.float64, True
    key = refusal(TypeError, jax.dtypes.canonicalize_dtype, jax.random.key(0).dtype)
    yield "canonicalize_dtype of keys", "extended dtype" in str(key), True


def types() -> Iterator[Fact]:
    hijax.control_flow_allowed_effects.add_type(Effect)
    yield "an effect is allowed", hijax.control_flow_allowed_effects.contains(Effect()), True
    yield "effects are equal", Effect() == Effect() != hijax, True
    hijax.register_hitype(Type, type)
    for name, apply in (("new", hijax.HiPrimitive("new").bind), ("New", New())):
        wanted = (
            f"{name}: values are arrays, or pytrees of arrays. Types of a library's own "
            "(jax.experimental.hijax) are not supported."
        )
        yield f"the primitive {name}", refusal(NotImplementedError, apply, 1.0), wanted
