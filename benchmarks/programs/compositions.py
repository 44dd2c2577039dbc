"""Derivatives of a program that one takes, as functions of a library and a scalar function of parameters and data."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

Derivative = Callable[[ModuleType, Callable[..., Any]], Callable[..., Any]]
COPIES, STEPS, RATE = 3, 4, 1e-4


def gradient(lib: ModuleType, f: Callable[..., Any]) -> Callable[..., Any]:
    return lib.value_and_grad(f)


def checkpointed(lib: ModuleType, f: Callable[..., Any]) -> Callable[..., Any]:
    return lib.value_and_grad(lib.checkpoint(f))


def ensemble(lib: ModuleType, f: Callable[..., Any]) -> Callable[..., Any]:
    """Compute values and gradients at several parameters at once."""

    def mapped(parameters: Any, *data: Any) -> Any:
        scales = lib.numpy.linspace(0.97, 1.03, COPIES)
        copies = lib.tree.map(lambda x: lib.vmap(lambda s: s.astype(x.dtype) * x)(scales), parameters)
        return lib.vmap(lib.value_and_grad(f), in_axes=(0, *[None] * len(data)))(copies, *data)

    return mapped


def descent(lib: ModuleType, f: Callable[..., Any]) -> Callable[..., Any]:
    """Take some steps of gradient descent, of normalised length, in a loop."""

    def descend(parameters: Any, *data: Any) -> Any:
        def step(parameters: Any, _: Any) -> Any:
            value, gradients = lib.value_and_grad(f)(parameters, *data)
            size = sum(lib.numpy.sum(leaf**2) for leaf in lib.tree.leaves(gradients)) ** 0.5
            return lib.tree.map(lambda x, g: x - RATE * g / (1 + size), parameters, gradients), value

        return lib.lax.scan(step, parameters, None, length=STEPS)

    return descend


def hessian(lib: ModuleType, f: Callable[..., Any]) -> Callable[..., Any]:
    """Compute the gradient, and the product of the Hessian with the parameters, forward over reverse."""

    def product(parameters: Any, *data: Any) -> Any:
        return lib.jvp(lambda x: lib.grad(f)(x, *data), (parameters,), (parameters,))

    return product


def reverse_over_reverse(lib: ModuleType, f: Callable[..., Any]) -> Callable[..., Any]:
    """Compute the squared length of the gradient, scaled, and its gradient."""

    def length(parameters: Any, *data: Any) -> Any:
        return sum(lib.numpy.mean(leaf**2) for leaf in lib.tree.leaves(lib.grad(f)(parameters, *data)))

    return lib.value_and_grad(length)


def chain(lib: ModuleType, f: Callable[..., Any]) -> Callable[..., Any]:
    """Run a chain of Hamiltonian Monte Carlo (Neal 2011) on a log-density whose last datum is a key."""
    tnp = lib.numpy

    def sample(position: Any, *data_and_key: Any) -> Any:
        *data, key = data_and_key
        slope = lib.grad(lambda q: f(q, *data, key))

        def leap(state: Any, _: Any) -> Any:
            q, p = state
            p = p + 0.01 * slope(q)
            q = q + 0.02 * p
            return (q, p + 0.01 * slope(q)), None

        def transition(q: Any, key: Any) -> Any:
            direction, accept = lib.random.split(key)
            p = lib.random.normal(direction, q.shape, q.dtype)
            (proposed, end), _ = lib.lax.scan(leap, (q, p), None, length=5)
            gain = f(proposed, *data, key) - f(q, *data, key) - (end @ end - p @ p) / 2
            q = tnp.where(tnp.log(lib.random.uniform(accept, (), q.dtype)) < gain, proposed, q)
            return q, q

        return lib.lax.scan(transition, position, lib.random.split(key, 10))[1]

    return sample


COMPOSITIONS: dict[str, Derivative] = {
    "gradient": gradient,
    "checkpoint": checkpointed,
    "vmap": ensemble,
    "descent": descent,
    "hessian": hessian,
    "reverse over reverse": reverse_over_reverse,
}
