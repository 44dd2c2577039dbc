"""Private modules lead to public functions of the same name; what cannot be done raises only when it is used."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax._src.lax.control_flow
import jax._src.lax.lax
import numpy as np
from jax._src.distributed import global_state
from jax._src.interpreters.batching import is_vmappable
from jax._src.lib import xla_client
from jax._src.numpy.lax_numpy import ufunc
from jax._src.numpy.util import promote_dtypes, promote_dtypes_complex, promote_dtypes_inexact
from jax._src.scipy.special import gammaln
from jax.experimental import colocated_python, multihost_utils
from jax.experimental import pallas as pl
from jax.experimental.layout import Format
from jax.experimental.pjit import pjit
from jax.experimental.sparse import BCSR, JAXSparse
from jax.extend import ifrt_programs
from jax.extend.backend import get_backend

import tapeless as tl
from tests.as_jax.facts import LACKING, Fact, refusal

ONES = np.ones(2, np.int32), np.ones(2, np.float16)
X = jax.numpy.ones(2)
OURS: dict[str, tuple[Any, Any]] = {
    "jax.experimental.pjit.pjit": (pjit, tl.jit),
    "jax._src.stages.Lowered": (jax._src.stages.Lowered, tl.stages.Lowered),
    "jax._src.numpy.lax_numpy.ufunc": (ufunc, tl.numpy.ufunc),
    "jax._src.scipy.special.gammaln": (gammaln, tl.scipy.special.gammaln),
    "jax._src.lib.xla_client.XlaRuntimeError": (xla_client.XlaRuntimeError, tl.errors.JaxRuntimeError),
    "jax.numpy.__array_namespace_info__": (
        jax.numpy.__array_namespace_info__,
        tl.numpy.__array_namespace_info__,
    ),
    "jax._src.lax.control_flow.scan": (jax._src.lax.control_flow.scan, tl.lax.scan),
    "jax._src.lax.lax.scan": (jax._src.lax.lax.scan, tl.lax.scan),
}


def facts() -> Iterator[Fact]:
    for name, (found, ours) in OURS.items():
        yield name, found, ours
    placed = jax.numpy.ones(2).sharding
    yield "Format of a sharding", Format(None, placed) == placed, True
    yield "reached_preemption_sync_point", bool(multihost_utils.reached_preemption_sync_point(1)), False
    by_devices = "make_array_from_single_device_arrays"
    yield by_devices, getattr(jax, by_devices).__name__, by_devices
    yield "ifrt_programs", isinstance(ifrt_programs.ifrt_programs, type), True
    yield "get_backend", get_backend().platform, jax.devices()[0].platform
    yield "global_state.client", global_state.client, None
    yield "isinstance(arrays, JAXSparse)", isinstance(ONES, JAXSparse), False
    yield "is_vmappable(arrays)", bool(is_vmappable(ONES)), False
    yield "names that are imported only", None in (colocated_python, BCSR), False
    block = refusal(NotImplementedError, pl.BlockSpec, (1,))
    yield "pallas.BlockSpec", block, f"jax.experimental.pallas.BlockSpec: {LACKING}"
    yield "sparsify", jax.experimental.sparse.sparsify(package) is package, True
    yield from promotion()
    yield from monitoring()
    yield from known_and_traced()
    yield from symbolic_shapes()


def promotion() -> Iterator[Fact]:
    both = [[str(x.dtype) for x in f(*ONES)] for f in (promote_dtypes, promote_dtypes_complex)]
    yield "promote_dtypes", both[0], ["float16"] * 2
    yield "promote_dtypes_complex", both[1], ["complex64"] * 2
    yield "promote_dtypes_inexact", [str(x.dtype) for x in promote_dtypes_inexact(ONES[0])], ["float32"]


def monitoring() -> Iterator[Fact]:
    heard: list[Any] = []
    jax.monitoring.register_scalar_listener(lambda *args, **kwargs: heard.append((args, kwargs)))
    jax.monitoring.record_scalar("/loss", 2.0, step=3)
    jax.monitoring.clear_event_listeners()
    jax.monitoring.record_scalar("/loss", 1.0)
    yield "a listener hears until it is removed", heard, [(("/loss", 2.0), {"step": 3})]


def package(x: Any) -> str:
    """The name of the package that the class of an array says to be of."""
    return type(x).__module__.partition(".")[0]


def known_and_traced() -> Iterator[Fact]:
    x, known, traced = X, [], []
    jax.grad(lambda x: known.append(jax.core.is_concrete(x)) or x)(1.0)
    jax.make_jaxpr(lambda x: traced.append((package(x), jax.core.is_concrete(x))) or x)(x)
    yield "is_concrete of an array", jax.core.is_concrete(x), True
    yield "is_concrete under grad", known, [True]
    yield "package and is_concrete of a tracer", traced, [("jax", False)]
    yield "concrete_or_error", jax.core.concrete_or_error(int, x[0]), 1
    yield "package of an array", package(x), "jaxlib"
    yield "module of jax.Array", jax.Array.__module__, "jax"


def symbolic_shapes() -> Iterator[Fact]:
    n, three = jax.export.symbolic_shape("(n, 3)")
    yield "is_symbolic_dim", [jax.export.is_symbolic_dim(dim) for dim in (n, three)], [True, False]
    yield "repr of a size", repr(n), "n"
    yield "a size with a constraint", jax.export.symbolic_shape("n", constraints=["n >= 2"]) == (n,), True
    like = jax.ShapeDtypeStruct((n, three), "float32")
    whole, part = jax.eval_shape(lambda x: (x.T @ x, [x[::2, :1], x]), like)
    sizes = part[0].shape
    yield "eval_shape: sizes that are summed", whole.shape, (3, 3)
    yield "eval_shape: sizes that stay", part[1].shape == (n, 3), True
    yield "eval_shape: a part of a known size", sizes[1], 1
    yield "eval_shape: a part of a symbolic size", jax.export.is_symbolic_dim(sizes[0]), True
    yield "eval_shape: ... is another size", sizes[0] is n, False
    many = jax.export.symbolic_shape("a, b, c, d, e, f, g")
    yield "seven sizes", [repr(dim) for dim in many], list("abcdefg")
    yield "their samples differ", len(set(sum([dim.samples for dim in (n, *many)], ()))), 16
    refused = {
        ("2*n", "n >= 2"): "symbolic_shape: 2*n is an expression: give numbers and names only.",
        ("n", "m == n"): "symbolic_shape: 'm == n' is not of the form 'n >= 2', up to 83.",
        ("n", "n >= 84"): "symbolic_shape: 'n >= 84' is not of the form 'n >= 2', up to 83.",
    }
    for (spec, constraint), text in refused.items():
        found = refusal(NotImplementedError, partial(jax.export.symbolic_shape, constraints=[constraint]), spec)
        yield f"symbolic_shape({spec!r}), {constraint}", found, text
    axes = refusal(ValueError, jax.eval_shape, lambda x: x if len(x) < 86 else x[0], like)
    told = "a result has 2 axes or 1, depending on a symbolic size." in str(axes)
    yield "a number of axes that depends on a size", told or axes, True


def facts_afterwards() -> Iterator[Fact]:
    here = [package(X), tl.Array.__module__.partition(".")[0]]
    yield "packages afterwards", here, ["tapeless"] * 2
