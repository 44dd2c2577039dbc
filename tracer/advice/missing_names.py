"""Errors for names that a public module does not have: they suggest the name that is meant, or where it is."""

import importlib
from typing import Final

from tapeless.tracer.advice.pytorch_names import PYTORCH
from tapeless.tracer.advice.substitutes import SUBSTITUTES
from tapeless.tracer.array import Array

# Names of other libraries and of the literature, with ours.
_MEANT = {
    "autograd": "tl.grad",
    "backward": "tl.grad",
    "cat": "tnp.concatenate",
    "clip_by_global_norm": "tl.optimizers.clip_by_global_norm",
    "compile": "tl.jit",
    "func": "tl.grad, tl.vmap, tl.jvp",
    "Generator": "tl.random.key",
    "cuda": "tl.devices",
    "device_array": "tnp.asarray",
    "DeviceArray": "tl.Array",
    "from_numpy": "tnp.asarray",
    "gather": "tnp.take_along_axis, or x[indices]",
    "gradient": "tl.grad",
    "gradients": "tl.grad",
    "inverse": "tnp.linalg.inv",
    "index_update": "x.at[index].set(values)",
    "index_add": "x.at[index].add(values)",
    "manual_seed": "tl.random.key",
    "detach": "tl.lax.stop_gradient",
    "PRNGKey": "tl.random.key",
    "rand": "tl.random.uniform",
    "randn": "tl.random.normal",
    "RandomState": "tl.random.key",
    "default_rng": "tl.random.key",
    "seed": "tl.random.key",
    "test_util": "tl.testing",
    "linear_util": "tl.extend.linear_util",
    "tensor": "tnp.array",
    "Tensor": "tl.Array",
    "tree_flatten": "tl.tree.flatten",
    "tree_leaves": "tl.tree.leaves",
    "tree_map": "tl.tree.map",
    "tree_multimap": "tl.tree.map",
    "tree_reduce": "tl.tree.reduce",
    "tree_structure": "tl.tree.structure",
    "tree_unflatten": "tl.tree.unflatten",
    "trapz": "tnp.trapezoid",
    "unsqueeze": "tnp.expand_dims",
}
# Attributes of arrays of other libraries, or of mutable arrays, with our expressions.
_MEANT_OF_ARRAY = {
    "backward": "tl.grad(f)(x)",
    "grad": "tl.grad(f)(x)",
    "requires_grad": "tl.grad(f, argnums): functions are differentiated, in the arguments that are named",
    "requires_grad_": "tl.grad(f, argnums): functions are differentiated, in the arguments that are named",
    "register_hook": "tl.custom_vjp, for a function whose backward pass changes or prints the cotangent",
    "retain_grad": "tl.grad(f)(x), of a function f of the intermediate value",
    "detach": "tl.lax.stop_gradient(x)",
    "numpy": "numpy.asarray(x)",
    "data": "numpy.asarray(x)",
    "cpu": 'tl.device_put(x, tl.devices("cpu")[0])',
    "cuda": "tl.device_put(x, device)",
    "to": "tl.device_put(x, device) or x.astype(dtype)",
    "type": "x.astype(dtype)",
    "float": "x.astype(tnp.float32)",
    "double": "x.astype(tnp.float64)",
    "half": "x.astype(tnp.float16)",
    "bfloat16": "x.astype(tnp.bfloat16)",
    "int": "x.astype(int)",
    "long": "x.astype(tnp.int64)",
    "bool": "x.astype(bool)",
    "clone": "x.copy()",
    "contiguous": "x: arrays have no other layout",
    "chunk": "tnp.split(x, parts, axis)",
    "clamp": "tnp.clip(x, low, high), where None is no bound",
    "clamp_max": "tnp.clip(x, None, high)",
    "clamp_min": "tnp.clip(x, low, None)",
    "dim": "x.ndim",
    "expand": "tnp.broadcast_to(x, shape)",
    "gather": "tnp.take_along_axis(x, indices, axis)",
    "index_select": "tnp.take(x, indices, axis)",
    "is_cuda": "x.device",
    "fill": "tnp.full_like(x, value)",
    "itemset": "x.at[index].set(value)",
    "masked_fill": "tnp.where(mask, value, x)",
    "masked_select": "x[mask]",
    "matmul": "x @ y",
    "mm": "x @ y",
    "bmm": "x @ y",
    "nelement": "x.size",
    "norm": "tnp.linalg.norm(x)",
    "numel": "x.size",
    "permute": "x.transpose(axes)",
    "put": "x.at[index].set(values)",
    "repeat_interleave": "tnp.repeat(x, n, axis)",
    "reshape_as": "x.reshape(y.shape)",
    "scatter": "x.at[index].set(values)",
    "scatter_add": "x.at[index].add(values)",
    "split": "tnp.split(x, parts, axis), which counts the parts, not the elements of a part",
    "t": "x.T",
    "topk": "tl.lax.top_k(x, k)",
    "unbind": "tnp.unstack(x)",
    "unsqueeze": "tnp.expand_dims(x, axis)",
    "view_as": "x.reshape(y.shape)",
}
_SHORT = {"tapeless": "tl", "tapeless.numpy": "tnp"}
# Namespaces that are searched for a name, in this order.
NAMESPACES = (
    "tapeless tapeless.numpy tapeless.lax tapeless.nn tapeless.random tapeless.tree tapeless.numpy.linalg "
    "tapeless.numpy.fft tapeless.scipy.special tapeless.scipy.linalg tapeless.scipy.stats tapeless.scipy.signal "
    "tapeless.nn.initializers tapeless.optimizers tapeless.image tapeless.ops tapeless.debug tapeless.tree_util "
    "tapeless.experimental tapeless.testing tapeless.errors tapeless.dtypes tapeless.lax.linalg"
).split()
# Namespaces that are searched for names of modules' functions, not for methods of arrays.
_OTHERS = (
    "tapeless.scipy tapeless.scipy.optimize tapeless.scipy.integrate tapeless.scipy.interpolate tapeless.scipy.ndimage "
    "tapeless.scipy.fft tapeless.scipy.sparse.linalg tapeless.scipy.spatial.transform tapeless.scipy.cluster.vq "
    "tapeless.experimental.ode tapeless.experimental.jet tapeless.experimental.checkify tapeless.flatten_util "
    "tapeless.sharding tapeless.stages tapeless.profiler tapeless.checkpoint_policies tapeless.ad_checkpoint "
    "tapeless.custom_batching tapeless.dlpack tapeless.index"
).split()


class Refusal:
    """The text of the error for a missing name; the suggestion is searched when it is printed, not by `hasattr`."""

    def __init__(self, module: str, name: str) -> None:
        self.module: Final = module
        self.name: Final = name

    def __str__(self) -> str:
        return f"module {self.module!r} has no attribute {self.name!r}.\n  {_advice(self.module, self.name)}"


class ArrayRefusal:
    """The text of the error for an attribute that arrays do not have."""

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def __str__(self) -> str:
        return f"an array has no attribute {self.name!r}.{_advice_on_array(self.name)}"


def _advice_on_array(name: str) -> str:
    if name in _MEANT_OF_ARRAY:
        return f"\n  Do you mean {_MEANT_OF_ARRAY[name]}?"
    if name.endswith("_"):
        return "\n  Arrays are never changed in place: write x = x + y, or x = x.at[index].add(y)."
    space = next((space for space in NAMESPACES if callable(vars(importlib.import_module(space)).get(name))), None)
    if space is not None:
        return f"\n  Do you mean {_shortened(space)}.{name}(x)?"
    close = importlib.import_module("difflib").get_close_matches(name, _names_of_arrays(), 1, 0.75)
    return f"\n  Do you mean x.{close[0]}?" if close else ""


def _names_of_arrays() -> list[str]:
    """List the public attributes and methods of arrays."""
    return [name for name in dir(Array) if not name.startswith("_")]


def _advice(module: str, name: str) -> str:
    if name in _MEANT:
        return f"Do you mean {_MEANT[name]}?"
    if name in PYTORCH:
        return f"Write {PYTORCH[name]}.\n  The page 'Coming from PyTorch' of the documentation has more."
    elsewhere = next((space for space in (*NAMESPACES, *_OTHERS) if space != module and name in _names(space)), None)
    if elsewhere is not None:
        return f"It is {_shortened(elsewhere)}.{name}."
    if name in SUBSTITUTES:
        return f"Write {SUBSTITUTES[name]}."
    close = importlib.import_module("difflib").get_close_matches(name, _names(module), 1, 0.75)
    if close:
        return f"Do you mean {_shortened(module)}.{close[0]}?"
    return "If JAX has it, it is not there yet: see the page 'Coverage' of the documentation."


def _names(module: str) -> list[str]:
    """List the public names of a module."""
    loaded = importlib.import_module(module)
    return getattr(loaded, "__all__", None) or [name for name in vars(loaded) if not name.startswith("_")]


def _shortened(module: str) -> str:
    """Abbreviate a module as programs do: `tnp` for `tapeless.numpy`."""
    return _SHORT.get(module) or module.replace("tapeless", "tl", 1)
