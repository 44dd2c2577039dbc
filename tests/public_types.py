"""Types of what transformations return, for pyright and mypy: this file is checked, not run.

A comment `type: ignore` stands where an error is expected; one that is not needed is an error, too.
"""

import functools
from typing import Any, NamedTuple, assert_type

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.custom_batching import custom_vmap, sequential_vmap
from tapeless.experimental import checkify
from tapeless.extend.core import ClosedJaxpr
from tapeless.typing import Array, ArrayLike, DTypeLike, Key


class Params(NamedTuple):
    """Weights of a layer."""

    w: Array
    b: Array


def apply(params: Params, x: Array, scale: float = 1.0) -> Array:
    """A layer."""
    return tnp.tanh(x @ params.w + params.b) * scale


def loss(params: Params, x: Array, y: ArrayLike) -> Array:
    """A scalar."""
    return tnp.sum((apply(params, x) - y) ** 2)


def loss_and_hidden(params: Params, x: Array) -> tuple[Array, dict[str, Array]]:
    """A scalar, and what was computed on the way."""
    hidden = apply(params, x)
    return tnp.sum(hidden), {"hidden": hidden}


def sample(key: Key, shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> Array:
    """Numbers."""
    return tl.random.normal(key, shape, dtype)


params = Params(tnp.ones((3, 2)), tnp.zeros(2))
x = tnp.ones((5, 3))


def compiled() -> None:
    f = tl.jit(apply)
    assert_type(f(params, x), Array)
    assert_type(f(params, x, scale=2.0), Array)
    f("wrong", x)  # type: ignore
    f(params, x, 2.0, 3)  # type: ignore
    f(params)  # type: ignore
    f(params, x, unknown=1)  # type: ignore
    f(params, x).no_method()  # type: ignore
    assert_type(tl.jit(apply, static_argnames="scale")(params, x), Array)
    assert_type(tl.jit(donate_argnums=0)(apply)(params, x), Array)
    assert_type(by_partial.lower(x, 2).as_text(), str)
    assert_type(tl.jit(tl.jit(loss_and_hidden))(params, x)[1], dict[str, Array])


@tl.jit
def decorated(x: ArrayLike, n: int) -> tuple[Array, Array]:
    """Two arrays."""
    return tnp.sin(x), tnp.cos(x)


@tl.jit(static_argnums=1)
def decorated_with_options(x: ArrayLike, n: int) -> Array:
    """An array."""
    return tnp.sin(x)


@functools.partial(tl.jit, static_argnames="n")
def by_partial(x: Array, n: int) -> Array:
    """An array."""
    return x * n


class Model:
    """An object with a compiled method."""

    @tl.jit
    def step(self, x: Array) -> Array:
        """An array."""
        return x

    @tl.checkpoint
    def block(self, x: Array) -> Array:
        """An array."""
        return x


def decorators() -> None:
    assert_type(decorated(np.ones(3), 1), tuple[Array, Array])
    assert_type(decorated(1.0, 1)[0], Array)
    decorated(1.0)  # type: ignore
    assert_type(decorated_with_options(x, 1), Array)
    assert_type(Model().step(x), Array)
    assert_type(Model().block(x), Array)
    Model().step("wrong")  # type: ignore


def gradients() -> None:
    assert_type(tl.grad(loss)(params, x, np.ones(2)), Params)
    assert_type(tl.grad(loss, memory_budget="2GB")(params, x, np.ones(2)), Params)
    assert_type(tl.value_and_grad(loss)(params, x, 1.0), tuple[Array, Params])
    assert_type(tl.jit(tl.value_and_grad(loss))(params, x, 1.0), tuple[Array, Params])
    assert_type(tl.grad(loss_and_hidden, has_aux=True)(params, x), tuple[Params, dict[str, Array]])
    (value, aux), gradient = tl.value_and_grad(loss_and_hidden, has_aux=True)(params, x)
    assert_type(value, Array)
    assert_type(aux, dict[str, Array])
    assert_type(gradient, Params)
    assert_type(tl.grad(loss, argnums=(0, 1))(params, x, 1.0), tuple[Any, ...])
    tl.grad(loss)(x, x, 1.0)  # type: ignore
    tl.grad(loss)(params)  # type: ignore


def jacobians() -> None:
    for derive in (tl.jacfwd(apply), tl.jacrev(apply, argnums=1), tl.hessian(apply)):
        assert_type(derive(params, x, 2.0), Any)
        derive(x, x)  # type: ignore
        derive(params)  # type: ignore
    assert_type(tl.jacfwd(loss_and_hidden, has_aux=True)(params, x), tuple[Any, dict[str, Array]])
    assert_type(tl.jacrev(loss_and_hidden, has_aux=True)(params, x)[1], dict[str, Array])
    assert_type(tl.hessian(lambda p: p["w"] ** 2, chunk_size=2)({"w": x}), Any)
    assert_type(tl.jacobian(loss_and_hidden, has_aux=True, memory_budget="1GB")(params, x)[1], dict[str, Array])
    tl.jacfwd(loss_and_hidden, has_aux=True)(x, x)  # type: ignore


def batched_and_checkpointed() -> None:
    assert_type(tl.vmap(apply, in_axes=(None, 0, None))(params, x, 1.0), Array)
    assert_type(tl.vmap(tl.grad(loss))(params, x, 1.0), Params)
    assert_type(tl.checkpoint(apply)(params, x), Array)
    assert_type(tl.checkpoint(policy=tl.checkpoint_policies.dots_saveable)(apply)(params, x), Array)
    tl.vmap(apply)(x, x)  # type: ignore
    tl.checkpoint(apply)(x, x)  # type: ignore


@tl.custom_jvp
def double(x: Array) -> Array:
    """Twice x."""
    return 2 * x


@double.defjvp
def double_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The rule."""
    return double(*primals), 2 * tangents[0]


def clip(x: Array, limit: float) -> Array:
    """x."""
    return x


clipped = tl.custom_vjp(clip, nondiff_argnums=(1,))


@functools.partial(tl.custom_vjp, nondiff_argnums=(1,))
def clip_by_partial(x: Array, limit: float) -> Array:
    """x."""
    return x


clip_by_partial.defvjp(lambda x, limit: (x, None), lambda limit, kept, ct: (ct,))


@functools.partial(tl.custom_jvp, nondiff_argnums=(1,))
def scale_by_partial(x: Array, factor: float) -> Array:
    """x."""
    return x


@scale_by_partial.defjvp
def scale_by_partial_jvp(factor: float, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The rule."""
    return scale_by_partial(*primals, factor), factor * tangents[0]


@custom_vmap
def batched_apart(x: Array, scale: float) -> Array:
    """x."""
    return x * scale


def custom_rules() -> None:
    assert_type(tl.custom_vjp(functools.partial(clip, limit=1.0))(x), Array)
    assert_type(tl.custom_jvp(functools.partial(clip, limit=1.0))(x), Array)
    assert_type(batched_apart(x, 1.0), Array)
    assert_type(sequential_vmap(apply)(params, x), Array)
    batched_apart("wrong", 1.0)  # type: ignore
    sequential_vmap(apply)(x, x)  # type: ignore
    assert_type(double(x), Array)
    assert_type(double_jvp((x,), (x,)), tuple[Array, Array])
    assert_type(tl.grad(double)(x), Array)
    double("wrong")  # type: ignore
    assert_type(clipped(x, 1.0), Array)
    assert_type(clip_by_partial(x, limit=1.0), Array)
    assert_type(scale_by_partial(x, 1.0), Array)
    clip_by_partial("wrong", 1.0)  # type: ignore
    scale_by_partial(x)  # type: ignore


def arguments_and_results() -> None:
    """Functions take arrays, NumPy's data and numbers, and nothing else; they give arrays, not Any."""
    assert_type(tnp.sin(np.ones(3)), Array)
    assert_type(tnp.add(1, np.float32(2)), Array)
    assert_type(tl.lax.add(x, 1.0), Array)
    assert_type(tl.nn.relu(True), Array)
    assert_type(tnp.where(x > 0, x, 0.0), Array)
    assert_type(tnp.where(x > 0), tuple[Array, ...])
    assert_type(tnp.atleast_2d(x), Array)
    assert_type(tnp.atleast_1d(x, 2.0), list[Array])
    assert_type(x[0].at[1].set(2.0) @ params.w, Array)
    assert_type(np.ndim(x), int)
    assert_type(tnp.zeros(3, tnp.float32), Array)
    assert_type(tl.random.normal(tl.random.key(0), (3,), x.dtype), Array)
    tnp.zeros(3, 32)  # type: ignore
    tnp.sin("wrong")  # type: ignore
    tnp.sum([1.0, 2.0])  # type: ignore
    tl.lax.add(x, None)  # type: ignore
    tl.nn.softmax({"x": x})  # type: ignore
    x + "wrong"  # type: ignore


def linear_maps() -> None:
    value, push = tl.linearize(loss, params, x, 1.0)
    assert_type(value, Array)
    result, pull = tl.vjp(loss_and_hidden, params, x)
    assert_type(result, tuple[Array, dict[str, Array]])
    assert_type(tl.vjp(loss_and_hidden, params, x, has_aux=True)[2], dict[str, Array])
    assert_type(tl.jvp(loss, (params, x, 1.0), (params, x, 1.0)), tuple[Array, Array])
    push(params, x, 1.0)
    pull(result)


def programs() -> None:
    assert_type(tl.make_jaxpr(loss)(params, x, 1.0), ClosedJaxpr)
    assert_type(tl.make_jaxpr(loss)(params, tl.ShapeDtypeStruct((5, 3), np.float32), 1.0), ClosedJaxpr)
    assert_type(tl.make_jaxpr(loss, return_shape=True)(params, x, 1.0), tuple[ClosedJaxpr, Any])
    tl.make_jaxpr(loss)(params, x, 1.0).no_attribute  # type: ignore
    error, hidden = checkify.checkify(loss_and_hidden)(params, x)
    assert_type(error, checkify.Error)
    assert_type(hidden, tuple[Array, dict[str, Array]])
    checkify.checkify(loss_and_hidden)(x, x)  # type: ignore


def add(total: Array, each: Array) -> tuple[Array, dict[str, Array]]:
    """One step of a sum."""
    return total + each, {"total": total}


def move(params: Params, each: Array) -> tuple[Params, Array]:
    """One step that changes nothing."""
    return params, each


def count(i: Any, total: Array) -> Array:
    """One step of a sum."""
    return total + i


def control_flow() -> None:
    assert_type(tl.lax.scan(add, 0.0, x), tuple[Array, dict[str, Array]])
    assert_type(tl.lax.scan(add, tnp.zeros(3), x), tuple[Array, dict[str, Array]])
    assert_type(tl.lax.scan(move, params, x), tuple[Params, Array])
    assert_type(tl.lax.scan(move, params, x, checkpoint="sqrt"), tuple[Params, Array])
    assert_type(tl.lax.fori_loop(0, 3, count, 0.0, checkpoint=tl.checkpoint_policies.budget(0.5)), Array)
    tl.lax.scan(move, params, x, checkpoint=[3])  # type: ignore
    assert_type(tl.lax.fori_loop(0, 3, count, 0.0), Array)
    assert_type(tl.lax.fori_loop(0, 3, lambda i, p: p, params), Params)
    assert_type(tl.lax.while_loop(lambda c: c < 3, double_of, 0), Array)
    assert_type(tl.lax.while_loop(lambda p: tnp.all(p.w < 3), lambda p: p, params), Params)
    assert_type(tl.lax.cond(True, apply, apply, params, x), Array)
    assert_type(tl.lax.switch(1, [loss, loss], params, x, 1.0), Array)
    assert_type(tl.lax.map(double_of, x), Array)
    tl.lax.fori_loop(0, 3, lambda i, p: x, params)  # type: ignore


def double_of(x: Array) -> Array:
    """Twice x."""
    return 2 * x


def unannotated() -> None:
    """Functions without annotations give no errors."""

    def free(params, x):
        return tnp.sum(params["w"] * x["x"])

    anything: Any = free
    tl.jit(anything)(1, 2).sum()
    tl.checkpoint(anything)(1, 2).sum()
    tl.vmap(anything)(1, 2).sum()
    tl.custom_jvp(anything)(1, 2).sum()
    tl.grad(anything)(1, 2)["w"].sum()
    gradient: Any = tl.grad(free)({"w": x}, {"x": x})
    gradient["w"].sum()
    tl.grad(lambda v: tnp.sum(v**2))(3.0)
    tl.value_and_grad(lambda v, w: (v**2 + w).sum(), has_aux=False)({"a": 1}, w=3.0)
    tl.vmap(lambda v: v**2 + v.sum())(x)
    tl.linearize(lambda v: v**2, 3.0)[1](1.0).sum()
    tl.lax.scan(lambda c, v: (c + v, c), 0.0, x)[1].sum()
    tl.lax.fori_loop(0, 3, lambda i, c: c + i, 0)
    tl.lax.cond(True, lambda v: v + 1, lambda v: v**2, 3.0)
    tl.jit(lambda v: v**2 + v.sum())(x)
    tl.checkpoint(lambda v: v**2 + v.sum())(x)
    tl.jit(lambda v: 2 * v)(3.0)
    sample(tl.random.key(0), (3,))
