"""Traces of a library's own, written as for JAX: what they are handed, and that they compose with transformations."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.extend import core as extend_core
from tapeless.extend import linear_util as lu
from tapeless.extend.core import TraceTag, set_current_trace, take_current_trace
from tapeless.like_jax import jax_src
from tapeless.like_jax.own_primitives import OWN_BY_OPERATION
from tests.samples import SAMPLES
from tests.samples.sample import ours

seen: list[str] = []


class BoxTracer(tl.core.Tracer):
    def __init__(self, trace: Any, value: Any) -> None:
        super().__init__(trace, tl.typeof(value))
        self.value = value


class SlottedTracer(tl.core.Tracer):
    """Another way that libraries make tracers: it sets `_trace` itself, and has its type as a property."""

    __slots__ = ("value",)

    def __init__(self, trace: Any, value: Any) -> None:
        self._trace = trace
        self.value = value

    @property
    def aval(self) -> Any:
        return tl.typeof(self.value)


class BoxTrace(tl.core.Trace):
    """Applies each primitive to what the tracers hold, and notes its name."""

    tracer: Callable[..., Any] = BoxTracer

    def __init__(self, parent: Any, tag: Any) -> None:
        super().__init__()
        self.around, self.tag = parent, tag

    def to_val(self, x: Any) -> Any:
        mine = isinstance(x, tl.core.Tracer) and getattr(x._trace, "tag", None) is self.tag
        return x.value if mine else x

    def process_primitive(self, primitive: Any, tracers: Any, params: Any) -> Any:
        values = [self.to_val(x) for x in tracers]
        seen.append(str(primitive))
        found = primitive.bind_with_trace(self.around, values, [tl.typeof(x) for x in values], params)
        box = partial(type(self).tracer, self)
        return list(map(box, found)) if primitive.multiple_results else box(found)


class CallingTrace(BoxTrace):
    """Keeps rules of custom_jvp, and leaves those of custom_vjp out."""

    tracer = SlottedTracer

    def process_custom_jvp_call(self, primitive: Any, fun: Any, jvp: Any, tracers: Any, *, symbolic_zeros: Any) -> Any:
        values = [self.to_val(x) for x in tracers]
        params = {"subfuns": (subtrace(fun, self.tag), subtrace(jvp, self.tag)), "symbolic_zeros": symbolic_zeros}
        found = primitive.bind_with_trace(self.around, values, [tl.typeof(x) for x in values], params)
        return [SlottedTracer(self, x) for x in found]

    def process_custom_vjp_call(
        self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, *, out_trees: Any, symbolic_zeros: Any
    ) -> Any:
        with pytest.raises(NotImplementedError, match=r"^process_custom_vjp_call: fwd and bwd are not there"):
            fwd.call_wrapped(*tracers)
        values = subtrace(fun, self.tag).call_wrapped(*[self.to_val(x) for x in tracers])
        return [SlottedTracer(self, x) for x in values]


def subtrace(fun: Any, tag: Any, kind: Any = CallingTrace) -> Any:
    """Wrap a function: it is given the tracers of a new trace, and gives what they hold."""

    @lu.transformation
    def around(*values: Any) -> Any:
        with take_current_trace() as parent:
            trace = kind(parent, tag)
            with set_current_trace(trace):
                outs = yield [kind.tracer(trace, x) for x in values], {}
                yield tl.tree.map(trace.to_val, outs)

    return around(fun)


def boxed(f: Any, kind: Any = CallingTrace) -> Any:
    return lambda *values: subtrace(lu.wrap_init(f), TraceTag(), kind).call_wrapped(*values)


def of_sample(row: Any) -> Any:
    return lambda *xs: row.primitive.apply(*xs, **row.params)


def test_every_primitive():
    """Handed on with JAX's parameters, it is the same equation; translated, they are the same parameters again."""
    names = set()
    for row in SAMPLES:
        name = row.primitive.name
        if name in ("custom_jvp", "custom_vjp") or row.axis:
            continue
        known = OWN_BY_OPERATION.get(row.primitive)
        if known is not None:
            assert known.ours(known.theirs(row.params)) == row.params, name
            names.add(name)
        f, args = of_sample(row), list(map(ours, row.args))
        plain, through = str(tl.make_jaxpr(f)(*args)), str(tl.make_jaxpr(boxed(f, BoxTrace))(*args))
        assert through == plain, name
    assert len(names) > 60


def rough(x: Any) -> Any:
    """A function with control flow, calls, and rules of its own."""
    y = tl.jit(lambda x: tnp.cumsum(x) @ x)(x) * tl.nn.silu(x) + tl.nn.relu(x - 1)
    y, ys = lax.scan(lambda c, e: (tnp.sin(c) * e, c.sum()), y, x)
    y = lax.cond(y[0] > 0, tnp.exp, tnp.cos, y)
    y = lax.fori_loop(0, 2, lambda i, y: y * x[i], y)
    return tl.checkpoint(lambda y: tnp.where(y > 0, y, 2 * y))(y).sum() + ys @ x


X = tnp.array([0.5, -1.0, 1.5])
AROUND: dict[str, Any] = {
    "nothing": lambda f: f,
    "jit": tl.jit,
    "grad": tl.grad,
    "jvp": lambda f: lambda x: tl.jvp(f, (x,), (tnp.cos(x),))[1],
    "vmap": lambda f: lambda x: tl.vmap(f)(tnp.stack([x, 2 * x])),
    "hessian": lambda f: tl.jit(tl.hessian(f)),
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_transformations(around: Any):
    """A transformation of a traced function, a traced transformation, and one trace inside of another."""
    for f in (around(boxed(rough)), boxed(around(rough)), boxed(around(boxed(rough)))):
        np.testing.assert_allclose(f(X), around(rough)(X), rtol=1e-5)


def test_rules_of_functions():
    """A trace keeps a rule, or leaves it out; without a method for such calls it says which is missing."""

    @tl.custom_jvp
    def f(x: Any) -> Any:
        return x**2

    @tl.custom_vjp
    def g(x: Any) -> Any:
        return x**2

    f.defjvp(lambda xs, ts: (f(*xs), 5 * ts[0]), check_linear=False)
    g.defvjp(lambda x: (g(x), None), lambda _, ct: (7 * ct,))
    assert (tl.grad(f)(3.0), tl.grad(g)(3.0)) == (5, 7)
    assert (tl.grad(boxed(f))(3.0), tl.grad(boxed(g))(3.0)) == (5, 6) and boxed(tl.grad(f))(3.0) == 5
    assert tl.grad(boxed(tl.jit(f)))(3.0) == 5
    for call, name in ((f, "process_custom_jvp_call"), (g, "process_custom_vjp_call")):
        with pytest.raises(NotImplementedError, match=rf"^BoxTrace must define {name}\.$"):
            boxed(call, BoxTrace)(3.0)
    with (
        pytest.raises(NotImplementedError, match=r"^LibraryTrace must define process_primitive\.$"),
        set_current_trace(tl.core.Trace()),
    ):
        tnp.sin(1.0)
    assert jax_src.core.trace_state_clean() and jax_src.pjit.jit_p is extend_core.primitives.jit_p


def test_what_it_is_handed():
    """Primitives are JAX's objects where those are here, with JAX's names of parameters; tags are all alike."""
    handed: dict[str, Any] = {}

    class Trace(BoxTrace):
        def process_primitive(self, primitive: Any, tracers: Any, params: Any) -> Any:
            handed[str(primitive)] = primitive, params
            return super().process_primitive(primitive, tracers, params)

    def f(x: Any) -> Any:
        x = x.astype("float16").reshape(3, 1)
        x = lax.while_loop(lambda x: x.sum() < 9, lambda x: x + 1, x)
        return lax.argmax(lax.broadcast(x, (2,)) * x, 1, np.int32), tl.jit(lambda y: -y)(x)

    boxed(f, Trace)(X)
    assert handed["convert_element_type"][0] is lax.convert_element_type_p
    assert set(handed["convert_element_type"][1]) == {"new_dtype", "weak_type", "sharding"}
    assert handed["reshape"][1] == {"new_sizes": (3, 1), "dimensions": None, "sharding": None}
    assert set(handed["while"][1]) == {"cond_jaxpr", "body_jaxpr", "cond_nconsts", "body_nconsts"}
    assert set(handed["broadcast_in_dim"][1]) == {"shape", "broadcast_dimensions", "sharding"}
    assert handed["argmax"][1] == {"axes": (1,), "index_dtype": np.int32} and handed["mul"][1] == {"out_dtype": None}
    jit_p, params = handed["jit"]
    assert jit_p is extend_core.primitives.jit_p and params["name"] == params["jaxpr"].name and not params["inline"]
    assert TraceTag() == TraceTag() and hash(TraceTag()) == hash(TraceTag()) and TraceTag() != 0
    closed = tl.make_jaxpr(lambda c, x: (c + x, np.arange(3.0) * x))(0.0, 1.0)
    with pytest.raises(NotImplementedError, match=r"^bind: the program f closes over constants: make them oper"):
        lax.scan_p.bind(0.0, X, jaxpr=closed, num_consts=0, num_carry=1, length=3, reverse=False, unroll=1)


def test_leaks():
    """A tracer that was kept is refused outside of its function."""
    kept = []
    boxed(lambda x: kept.append(x) or x)(1.0)
    assert jax_src.core.full_lower(kept[0]) is kept[0] and kept[0].aval.at_least_vspace() == kept[0].aval.tangent()
    with pytest.raises(tl.errors.UnexpectedTracerError, match="of a library"):
        tnp.sin(kept[0])


def test_blocks_that_are_not_left():
    """A generator that is dropped in its block, because the function raised, restores no trace that is over."""
    with set_current_trace(BoxTrace(None, TraceTag())):
        block = take_current_trace()
        block.__enter__()
    del block
    assert jax_src.core.trace_state_clean()

    def fails(x: Any) -> Any:
        raise KeyError

    for f in (boxed(fails), tl.jit(boxed(fails)), boxed(tl.jit(fails))):
        with pytest.raises(KeyError):
            f(1.0)
        assert jax_src.core.trace_state_clean()
