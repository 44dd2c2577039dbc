"""Branches and loops as the Python they stand for, where `config.disable_jit` is set and the values are known."""

from collections.abc import Callable
from typing import Any

from tapeless.tracer import numpy as tnp
from tapeless.tracer import pytree
from tapeless.tracer.core import Tracer
from tapeless.tracer.rule_arguments import as_argument
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray


def runs_in_python(*values: Any) -> bool:
    """Tell whether control flow over these values runs in Python: `disable_jit` is on, and the values are known."""
    return config.disable_jit and not any(isinstance(x, Tracer) and x.concrete_value() is None for x in values)


def make_arrays(tree: Any) -> Any:
    """Make arrays of ours of the numbers and NumPy arrays in a pytree, for a branch or a body to compute with."""
    return pytree.tree_map(as_argument, tree)


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], val: Any, more: Any) -> Any:
    """Apply `body_fun` for as long as `cond_fun` is true, which is known; `more` is its first answer."""
    while more:
        val = body_fun(val)
        more = cond_fun(val)
    return val


def fori_loop(lower: int, upper: int, counter: ShapedArray, body_fun: Callable[[Any, Any], Any], val: Any) -> Any:
    """Apply `body_fun` for each number, an array of the type `counter`."""
    val = make_arrays(val)
    for i in range(lower, upper):
        val = body_fun(tnp.asarray(i, counter.dtype), val)
    return val


def scan(f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: Any, length: int, reverse: bool) -> tuple[Any, Any]:
    """Apply `f` to each element along the leading axis of `xs`, which is not empty, and stack its results."""
    ys: list[Any] = []
    carry = make_arrays(carry)
    for i in reversed(range(length)) if reverse else range(length):
        carry, y = f(carry, pytree.tree_map(lambda x, i=i: tnp.asarray(x)[i], xs))
        ys.append(y)
    in_order = ys[::-1] if reverse else ys
    return carry, pytree.tree_map(lambda *each: tnp.stack(each), *in_order)
