"""Einsum: sums of products of arrays with named indices, and the contraction of labelled arrays.

Operands are contracted two at a time, in the order that contraction_order.py finds. An index that two operands share
and that is not needed later is summed by dot_general; an index of a single operand is summed first; an index that
appears twice in an operand takes its diagonal.
"""

import itertools
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tapeless.tracer import core, dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.errors import not_supported
from tapeless.tracer.numpy.contraction_order import Path, canonical_optimize, contraction_path
from tapeless.tracer.numpy.matrices import diagonal
from tapeless.tracer.numpy.promotion import check_no_out, format_shape, promoted_dtypes
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.contraction import dot_general
from tapeless.tracer.primitives.reduction import reduce_or, reduce_sum
from tapeless.tracer.primitives.shape import reshape, transpose
from tapeless.tracer.types import by_protocol

Label = Any
Labels = tuple[Label, ...]
Labelled = tuple[Any, Labels]


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    _dot_general: Any = None,
    out_sharding: None = None,
) -> Array:
    """Sum products of elements over indices, named by letters.

    Args:
      subscripts: "ij,jk->ik": the indices of each operand, and of the result; without the arrow the result has the
        indices that appear once, in alphabetical order; "..." stands for axes that broadcast. Or einsum(x, [0, 1]).
      operands: arrays, of which axes of size 1 broadcast.
      optimize: the order of contraction. True, "auto", "optimal", "dp": the one with the fewest multiplications, up to
        eight operands, above that "greedy"; False: from left to right; or a path, as `numpy.einsum_path` gives it.
      precision, preferred_element_type: as for `lax.dot_general`.
      _dot_general: a function to contract two operands by, with the arguments of `lax.dot_general`, a keyword that
        libraries for JAX pass; None for `lax.dot_general`.
    Returns: an array of the common dtype, or `preferred_element_type`.
    Raises: ValueError if subscripts do not fit the operands, all are named; or for another `optimize`;
      NotImplementedError for an `out_sharding`; TypeError if `_dot_general` is no function.

    >>> import tapeless.numpy as tnp
    >>> tnp.einsum("ij,ij->i", tnp.ones((2, 3)), tnp.ones((2, 3))).tolist()
    [3.0, 3.0]
    """
    check_no_out("einsum", out)
    if out_sharding is not None:
        raise not_supported("einsum", "out_sharding", out_sharding)
    text, arrays = (subscripts, operands) if isinstance(subscripts, str) else _interleaved((subscripts, *operands))
    xs = promoted_dtypes("einsum", *arrays)
    labels, result = _parsed(text, [x.shape for x in xs])
    order = canonical_optimize(optimize, len(xs))
    how: dict[str, Any] = {"order": order, "precision": precision, "preferred_element_type": preferred_element_type}
    if _dot_general is None:
        return _einsum(*xs, labels=tuple(labels), out=result, **how)
    if not callable(_dot_general):
        raise TypeError(f"einsum: _dot_general must be a function, not {_dot_general!r}.")
    how["preferred_element_type"] = xs[0].dtype if preferred_element_type is None else preferred_element_type
    return contract(list(xs), labels, result, **how, dot=_dot_general)


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> tuple[list[Any], str]:
    """Find the order in which `einsum` contracts its operands, with a report on its cost, as in NumPy.

    Args:
      subscripts, operands, optimize: as for `einsum`; only the shapes of operands matter.
    Returns: ["einsum_path", (i, j), ...], pairs of positions in the list of the remaining operands; and a text.
    Raises: as `einsum`.
    """
    text, arrays = (subscripts, operands) if isinstance(subscripts, str) else _interleaved((subscripts, *operands))
    shapes = [np.shape(by_protocol(x)) for x in arrays]
    labels, result = _parsed(text, shapes)
    sizes = {label: 1 for word in labels for label in word}
    for word, shape in zip(labels, shapes, strict=True):
        sizes |= {label: n for label, n in zip(word, shape, strict=True) if n != 1}
    order = canonical_optimize(optimize, len(shapes))
    steps = contraction_path(order, labels, result, sizes) if len(shapes) > 1 else ((0,),)
    dummies = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
    found = np.einsum_path(text, *dummies, optimize=["einsum_path", *steps])
    return list(found[0]), str(found[1])


@core.compound
def _einsum(
    *xs: Any, labels: Any, out: Labels, order: str | Path, precision: Any, preferred_element_type: Any
) -> Array:
    return contract(
        list(xs), list(labels), out, order=order, precision=precision, preferred_element_type=preferred_element_type
    )


# ---- subscripts ----------------------------------------------------------------------------------------------


def _interleaved(items: Sequence[Any]) -> tuple[str, list[Any]]:
    """Convert einsum(x, [0, 1], y, [1, 2], [0, 2]) to subscripts as text, and the operands."""
    *pairs, last = items if len(items) % 2 else (*items, None)
    name = dict(
        zip(
            sorted({i for s in [*pairs[1::2], last or ()] for i in s if i is not Ellipsis}),
            string.ascii_letters,
            strict=False,
        )
    )
    words = ["".join("..." if i is Ellipsis else name[i] for i in s) for s in pairs[1::2]]
    end = "" if last is None else "->" + "".join("..." if i is Ellipsis else name[i] for i in last)
    return ",".join(words) + end, list(pairs[::2])


def _parsed(text: str, shapes: Sequence[tuple[int, ...]]) -> tuple[list[Labels], Labels]:
    """Parse subscripts into labels of the axes of each operand and the result; "..." becomes negative integers."""
    left, arrow, right = text.replace(" ", "").partition("->")
    words = left.split(",")
    if len(words) != len(shapes):
        raise ValueError(f"einsum: {text!r} describes {len(words)} operands, {len(shapes)} are given.")
    found = [_labels(text, word, shape) for word, shape in zip(words, shapes, strict=True)]
    dots = max((sum(isinstance(i, int) for i in labels) for labels in found), default=0)
    spread = tuple(range(-dots, 0))
    if arrow:
        result = _result_labels(right, spread)
    else:
        counts = Counter(left.replace(".", "").replace(",", ""))
        result = (*spread, *sorted(i for i, n in counts.items() if n == 1))
    _check_labels(text, found, result, shapes)
    return found, result


def _labels(text: str, word: str, shape: tuple[int, ...]) -> Labels:
    before, dots, after = word.partition("...")
    extra = len(shape) - len(before) - len(after)
    if (extra != 0 and not dots) or extra < 0 or (not (before + after).isalpha() and before + after):
        raise ValueError(f"einsum: {word!r} in {text!r} does not describe an operand of shape {format_shape(shape)}.")
    return (*before, *range(-extra, 0), *after)


def _result_labels(word: str, spread: Labels) -> Labels:
    before, dots, after = word.partition("...")
    return (*before, *(spread if dots else ()), *after)


def _check_labels(text: str, labels: list[Labels], result: Labels, shapes: Sequence[tuple[int, ...]]) -> None:
    sizes: dict[Label, int] = {}
    for names, shape in zip(labels, shapes, strict=True):
        for name, n in zip(names, shape, strict=True):
            if sizes.setdefault(name, n) != n and 1 not in (n, sizes[name]):
                listed = ", ".join(map(format_shape, shapes))
                raise ValueError(f"einsum: index {name!r} of {text!r} is {sizes[name]} and {n} long; shapes {listed}.")
            sizes[name] = max(sizes[name], n) if n else 0
    for name in result:
        if name not in sizes or result.count(name) > 1:
            fault = "in no operand" if name not in sizes else "there more than once"
            raise ValueError(f"einsum: index {name!r} of the result of {text!r} is {fault}.")


# ---- contraction ---------------------------------------------------------------------------------------------


def contract(
    xs: list[Any],
    labels: list[Labels],
    out: Labels,
    *,
    order: str | Path = "optimal",
    precision: Any = None,
    preferred_element_type: Any = None,
    dot: Callable[..., Any] = dot_general,
) -> Array:
    """Sum the products of labelled arrays over all labels not in `out`; axes of length 1 broadcast.

    `dot` multiplies two arrays as `dot_general` does. `order` is one of `contraction_order.contraction_path`. Sums are
    of the wider of `preferred_element_type` and the operands' dtype; the result is of `preferred_element_type`, if any.
    """
    wide = (
        None if preferred_element_type is None else dtypes.wider(xs[0].dtype, dtypes.canonical(preferred_element_type))
    )
    sizes: dict[Label, int] = {}
    for x, names in zip(xs, labels, strict=True):
        for name, n in zip(names, x.shape, strict=True):
            sizes[name] = n if sizes.get(name, 1) == 1 else sizes[name]
    terms = [_without_ones(_without_repeats((x, names)), sizes) for x, names in zip(xs, labels, strict=True)]
    for i, j in contraction_path(order, [names for _, names in terms], out, sizes):
        y, x = terms.pop(j), terms.pop(i)
        needed = {*out, *itertools.chain.from_iterable(names for _, names in terms)}
        terms.append(_product(x, y, needed, wide, partial(dot, precision=precision, preferred_element_type=wide)))
    found = _arranged(terms[0], out, wide)
    return found if wide is None else lax.convert_element_type(found, preferred_element_type)


def _without_repeats(term: Labelled) -> Labelled:
    x, names = term
    for name in [n for n, count in Counter(names).items() if count > 1]:
        while names.count(name) > 1:
            i = names.index(name)
            j = names.index(name, i + 1)
            x = diagonal(x, 0, i, j)
            names = (*names[:i], *names[i + 1 : j], *names[j + 1 :], name)
    return x, names


def _without_ones(term: Labelled, sizes: dict[Label, int]) -> Labelled:
    """Drop axes of length 1 that broadcast against longer ones: the product is the same."""
    x, names = term
    kept = [i for i, name in enumerate(names) if x.shape[i] == sizes[name]]
    if len(kept) == len(names):
        return term
    return reshape(x, tuple(x.shape[i] for i in kept)), tuple(names[i] for i in kept)


def _product(a: Labelled, b: Labelled, needed: set[Label], dtype: Any, dot: Callable[..., Any]) -> Labelled:
    """Multiply two terms, and sum over the labels that are not in `needed`."""
    (x, xs), (y, ys) = _summed(a, needed | {*b[1]}, dtype), _summed(b, needed | {*a[1]}, dtype)
    if x.dtype != y.dtype:  # one is already a sum, of the wider dtype
        x, y = lax.convert_element_type(x, dtype), lax.convert_element_type(y, dtype)
    shared = [n for n in xs if n in ys]
    batch, gone = [n for n in shared if n in needed], [n for n in shared if n not in needed]
    contracted = tuple(xs.index(n) for n in gone), tuple(ys.index(n) for n in gone)
    batched = tuple(xs.index(n) for n in batch), tuple(ys.index(n) for n in batch)
    z = dot(x, y, (contracted, batched))
    return z, (*batch, *(n for n in xs if n not in shared), *(n for n in ys if n not in shared))


def _summed(term: Labelled, needed: set[Label], dtype: np.dtype[Any] | None) -> Labelled:
    x, names = term
    gone = tuple(i for i, n in enumerate(names) if n not in needed)
    if not gone:
        return term
    x = x if dtype is None else lax.convert_element_type(x, dtype)
    total = reduce_or if dtypes.is_bool(x.dtype) else reduce_sum
    return total(x, gone), tuple(n for n in names if n in needed)


def _arranged(term: Labelled, out: Labels, dtype: np.dtype[Any] | None) -> Array:
    """Sum the last term over the labels that are not in `out`, and transpose it to the order of `out`."""
    x, names = _summed(term, set(out), dtype)
    return transpose(x, [names.index(n) for n in out])
