"""Advice on keywords that a function here does not take, of PyTorch or misspelt, computed when the error is printed.

Python raises that error before any code of ours runs, so that functions pay nothing for the advice.
"""

import difflib
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from tapeless.tracer.advice.missing_names import NAMESPACES

# Our parameters for a keyword: the first of these that the function has.
_PARAMETERS: Final = {
    "dim": ("axis", "dimension", "axes"),
    "dims": ("axis", "axes", "shape"),
    "keepdim": ("keepdims",),
    "lr": ("learning_rate",),
    "alpha": ("decay",),
    "initial_accumulator": ("initial_accumulator_value",),
    "in_dims": ("in_axes",),
    "out_dims": ("out_axes",),
    "eps": ("epsilon",),
    "stride": ("window_strides", "strides"),
    "kernel_size": ("window_dimensions",),
    "groups": ("feature_group_count",),
    "dilation": ("rhs_dilation", "window_dilation"),
    "size": ("shape",),
    "generator": ("key",),
    "low": ("minval",),
    "high": ("maxval",),
    "repeats": ("reps",),
}
# Replacements of keywords for which there is no parameter.
_MEANING: Final = {
    "unbiased": "ddof=1 for unbiased=True; here the default is ddof=0",
    "betas": "b1= and b2=",
    "weight_decay": "tl.optimizers.adamw, or tl.optimizers.chain(tl.optimizers.add_decayed_weights(c), optimizer)",
    "attn_mask": "mask= for booleans, bias= for numbers that are added; the axes are [batch, time, heads, features]",
    "dropout_p": "dropout of the result: tnp.where(tl.random.bernoulli(key, 1 - p, x.shape), x / (1 - p), 0)",
    "inplace": "nothing: arrays never change",
    "requires_grad": "nothing: tl.grad(f) differentiates in the arguments of f",
    "return_indices": "tnp.argmax, or tl.lax.top_k, for the positions",
    "create_graph": "nothing: gradients are functions, which can be differentiated",
    "retain_graph": "nothing: there is no graph that is freed",
    "std": "mean + std * tl.random.normal(key, shape)",
    "mean": "mean + std * tl.random.normal(key, shape)",
    "reduction": "tnp.sum or tnp.mean of the losses of examples",
    "map_location": "tl.device_put(tree, device)",
}
_UNEXPECTED: Final = re.compile(r"^(?:\w+\.)*?(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'")
_OF_DICTS: Final = "For the arrays of dicts write tl.tree.map(lambda p, g: p - 0.1 * g, params, gradients)."
_SHAPE_APART: Final = re.compile(r"^(build|sum)\(\) takes 2 positional arguments but ")


def advice(message: str) -> str | None:
    """Advise what to write instead of a keyword, from Python's message about it; None if no parameter is like it.

    Also what to write instead of PyTorch's checkpoint(f, x), of index.build(2, 3, f), of NumPy's functions of an index,
    and of arithmetic with dicts.
    """
    if "\n" in message:  # it has advice
        return None
    if message.startswith("unsupported operand"):
        return _OF_DICTS if "'dict'" in message else None
    if message.startswith("operand 'Index' does not support ufuncs"):
        return "Write tnp.sin(i), of tapeless.numpy, in the place of np.sin(i): the value of an index is not known."
    if _SHAPE_APART.match(message):
        return f"The shape for several indices is a tuple: {message.partition('(')[0]}((2, 3), lambda i, j: ...)."
    if message.startswith("checkpoint() takes from 0 to 1 positional arguments"):
        return "Arguments are given to the function that it returns: checkpoint(f)(x)."
    match = _UNEXPECTED.match(message)
    if match is None or "Did you mean" in message:  # Python 3.13 says it itself
        return None
    function, keyword = match.groups()
    signatures = [*_signatures(function)]
    for parameters in signatures:
        known = next((name for name in _PARAMETERS.get(keyword, ()) if name in parameters), None)
        if known is not None:
            return f"Write {known}= in the place of PyTorch's {keyword}=."
        if keyword in _MEANING:
            return f"In the place of PyTorch's {keyword}= write {_MEANING[keyword]}."
    close = difflib.get_close_matches(keyword, sorted(set[str]().union(*signatures)), 1, 0.7)
    return f"Do you mean {close[0]}=?" if close else None


def _signatures(name: str) -> Iterator[set[str]]:
    """Yield the parameters of each public function of that name."""
    spaces = map(importlib.import_module, NAMESPACES)
    found: list[Callable[..., Any]] = [f for space in spaces if callable(f := vars(space).get(name))]
    try:
        yield from [set(inspect.signature(f).parameters) for f in found]
    except ValueError:  # a class of Python's, which has no signature
        return
