"""Universal functions (ufuncs): elementwise functions with reduce, accumulate, reduceat, outer and at, as in NumPy.

Functions that are ufuncs in NumPy, as `add`, stay plain functions, so that a call costs nothing more; the methods of a
ufunc are set on them as attributes. A reduction that this package has as a function is computed by that; others scan
the elements one by one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.numpy import arithmetic, elementary, logic, reductions
from tapeless.tracer.numpy.at import AtIndexer
from tapeless.tracer.numpy.creation import asarray
from tapeless.tracer.numpy.indexing import take
from tapeless.tracer.numpy.joining import concatenate
from tapeless.tracer.numpy.logic import choose_between
from tapeless.tracer.numpy.promotion import array_operand, as_array, broadcast_to_shape, cast, check_no_out, inexact
from tapeless.tracer.numpy.shaping import moveaxis
from tapeless.tracer.primitives import bits, control_flow, reduction
from tapeless.tracer.primitives import elementwise as lax
from tapeless.tracer.primitives.operands import canonical_axis
from tapeless.tracer.primitives.shape import broadcasted_iota, expand_dims, full, reshape, slice_in_dim
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray

Axis = int | Sequence[int] | None
_KEY = "ufunc"  # the attribute that marks functions with the methods of ufuncs


class _IsUfunc(type):
    """The metaclass that makes `isinstance(f, ufunc)` true for functions extended by `make_ufuncs`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (isinstance(instance, FunctionType) and _KEY in vars(instance))


class ufunc(metaclass=_IsUfunc):
    """An elementwise function of arrays, with NumPy's methods of ufuncs.

    Args:
      function: of `nin` arrays, that broadcasts them; with `nout` results, a tuple if there are several.
      identity: what changes nothing as an operand: what elements are reduced from; None if there is none.
      signature: an `inspect.Signature` that names the operands; None if they have no names.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        nin: int,
        nout: int,
        name: str,
        identity: Any = None,
        signature: Any = None,
    ) -> None:
        self.function: Final = function
        self.nin: Final = nin
        self.nout: Final = nout
        self.identity: Final = identity
        self.__name__: Final = name
        self.__doc__ = function.__doc__
        if signature is not None:
            self.__signature__: Final = signature

    @property
    def nargs(self) -> int:
        """The number of operands and results."""
        return self.nin + self.nout

    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Any:
        """Apply the function. Raises: TypeError unless there are `nin` operands; NotImplementedError for `where`."""
        check_no_out(self.__name__, out)
        if where is not None:
            raise NotImplementedError(f"{self.__name__}: use tnp.where on the result instead of where=.")
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__}: {self.nin} operands are needed, not {len(args)}.")
        return self.function(*args)

    def __repr__(self) -> str:
        return f"<tapeless.numpy.ufunc {self.__name__!r}>"

    # ---- reductions

    def reduce(
        self,
        a: ArrayLike,
        axis: Axis = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Combine the elements along axes by the function: the first axis by default, all axes if `axis` is None.

        Args:
          a: [..]. dtype: to which elements are converted first.
          keepdims: whether the axes stay, of length 1.
          initial: combined with the result, and the result of no elements; the identity if None.
          where: which elements count, booleans broadcast to a; needs an identity or `initial`.
        Raises: ValueError unless there are two operands and one result, for no elements without an identity, or for
          several axes without an identity.
        """
        self._check_binary("reduce")
        check_no_out(f"{self.__name__}.reduce", out)
        x = _operand(f"{self.__name__}.reduce", a, dtype)
        own = _REDUCTIONS.get(self.function)
        if own is not None and not (own in _LOGARITHMS and dtypes.is_complex(x.dtype)):
            return own(x, axis=axis, keepdims=keepdims, initial=initial, where=where)
        axes = reductions.checked_axes(f"{self.__name__}.reduce", x, axis)
        start = self.identity if initial is None else initial
        if start is None and (where is not None or len(axes) != 1 or not x.shape[axes[0]]):
            raise ValueError(f"{self.__name__}.reduce: there is no identity; {x.aval} over axes {axes} needs initial.")
        rows = [_rows(x, axes)]
        if where is not None:
            counted = as_array(reductions.checked_where(f"{self.__name__}.reduce", x, where))
            rows.append(_rows(broadcast_to_shape(counted, x.shape), axes))
        found = self._folded(rows, start)
        return expand_dims(found, axes) if keepdims else found

    def _folded(self, rows: list[Array], start: Any) -> Array:
        """Fold the function over the first axis by a scan: `rows` are elements, and optionally a mask of them."""
        shape = rows[0].shape[1:]
        if start is None:
            first, rows = reshape(slice_in_dim(rows[0], 0, 1), shape), [slice_in_dim(rows[0], 1, None)]
        else:
            first = broadcast_to_shape(as_array(cast(start, self._result_dtype(rows[0], rows[0]))), shape)

        def step(carry: Array, x: Array, counts: Array | None = None) -> tuple[Array]:
            found = self.function(carry, x)
            return (found if counts is None else choose_between(counts, found, carry),)

        return self._scanned(step, [cast(first, self._result_dtype(first, rows[0]))], rows, 1)[0]

    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: Any = None, out: None = None) -> Array:
        """Combine each element along an axis with all before it, as `cumsum` does for `add`.

        Returns: the shape of a.
        Raises: ValueError unless there are two operands and one result, or for an axis out of range.
        """
        self._check_binary("accumulate")
        check_no_out(f"{self.__name__}.accumulate", out)
        x = _operand(f"{self.__name__}.accumulate", a, dtype)
        axis = canonical_axis(axis, x.ndim)
        own = _ACCUMULATIONS.get(self.function)
        if own is not None and not (own in _LOGARITHMS and dtypes.is_complex(x.dtype)):
            return own(x, axis)
        rows = moveaxis(x, axis, 0)
        if not rows.shape[0]:
            return x
        first, rest = reshape(slice_in_dim(rows, 0, 1), rows.shape[1:]), slice_in_dim(rows, 1, None)
        first = cast(first, self._result_dtype(first, rest))

        def step(carry: Array, x: Array) -> tuple[Array, Array]:
            found = self.function(carry, x)
            return found, found

        stacked = self._scanned(step, [first], [rest], 1)[1]
        return moveaxis(concatenate([expand_dims(first, (0,)), stacked], 0), 0, axis)

    def reduceat(self, a: ArrayLike, indices: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Array:
        """Reduce the segments along an axis that begin at each index and end before the next one.

        Args:
          a: [.., n, ..]. indices: [k] integers; a segment whose end is not after its begin has one element.
        Returns: [.., k, ..].
        Raises: ValueError unless there are two operands and one result, indices are a vector, and known ones inside;
          TypeError if they are no integers.
        """
        self._check_binary("reduceat")
        name = f"{self.__name__}.reduceat"
        check_no_out(name, out)
        x = _operand(name, a, dtype)
        axis = canonical_axis(axis, x.ndim)
        rows, begin = moveaxis(reductions.wide(x) if self.function in _ROUNDED_ONCE else x, axis, 0), asarray(indices)
        if begin.ndim != 1 or not dtypes.is_integer(begin.dtype):
            raise (ValueError if begin.ndim != 1 else TypeError)(f"{name}: indices are integers [k], not {begin.aval}.")
        n, begin = rows.shape[0], lax.convert_element_type(begin, np.int32)
        end = concatenate([slice_in_dim(begin, 1, None), full((min(begin.size, 1),), n, np.int32)], 0)
        found = AtIndexer(rows, indices).get()
        shape = (begin.size, *(1,) * (rows.ndim - 1))

        def step(carry: Array, k: Array, x: Array) -> tuple[Array]:
            inside = bits.bitwise_and(lax.gt(k, begin), lax.lt(k, end))
            combined = self.function(carry, broadcast_to_shape(expand_dims(x, (0,)), carry.shape))
            return (choose_between(reshape(inside, shape), combined, carry),)

        carry = cast(found, self._result_dtype(found, found))
        counted = broadcasted_iota(np.int32, (n,), 0)
        found = moveaxis(self._scanned(step, [carry], [counted, rows], 1)[0], 0, axis)
        return cast(found, x.dtype) if rows.dtype != x.dtype else found

    # ---- others

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Any:
        """Combine every element of A with every element of B: [axes of A, axes of B].

        Raises: ValueError unless there are two operands.
        """
        if self.nin != 2:
            raise ValueError(f"{self.__name__}.outer: there must be two operands, not {self.nin}.")
        x, y = array_operand("outer", A), array_operand("outer", B)
        return self.function(reshape(x, (*x.shape, *(1,) * y.ndim)), y)

    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array:
        """Return `a` with the function applied to the elements at `indices`, once for each time an index occurs.

        Args:
          a: [..]. indices: any index of a.
          b: broadcasts to a[indices], the second operand; None if there is one operand.
          inplace: must be False, as arrays are immutable.
        Raises: ValueError if `inplace`, or there are other than one or two operands and one result; TypeError if b is
          missing, or not wanted.
        """
        if inplace:
            raise ValueError(f"{self.__name__}.at: arrays are never changed in place; pass inplace=False.")
        if self.nin not in (1, 2) or self.nout != 1:
            raise ValueError(f"{self.__name__}.at: of functions of one or two operands, with one result.")
        if (b is None) != (self.nin == 1):
            raise TypeError(
                f"{self.__name__}.at: there are {self.nin} operands, so b is {'not ' * (self.nin == 1)}needed."
            )
        x = array_operand(f"{self.__name__}.at", a)
        own = _WRITES.get(self.function)
        if b is not None and own is not None:
            return getattr(AtIndexer(x, indices), own)(b)
        if b is None:
            return AtIndexer(x, indices).apply(self.function)
        return self._written(x, indices, b)

    def _written(self, x: Array, indices: Any, b: ArrayLike) -> Array:
        """Combine indexed elements with those of b in turn, by flat positions; positions outside are dropped."""
        order = reshape(broadcasted_iota(np.int32, (x.size,), 0), x.shape)
        places = AtIndexer(order, indices).get(fill_value=x.size)
        values = broadcast_to_shape(array_operand(f"{self.__name__}.at", b), places.shape)
        flat = reshape(x, (x.size,))

        def step(carry: Array, place: Array, y: Array) -> tuple[Array]:
            new = cast(self.function(take(carry, place, mode="clip"), y), carry.dtype)
            return (AtIndexer(carry, place).set(new, mode="drop"),)

        rows = [reshape(v, (places.size,)) for v in (places, values)]
        return reshape(self._scanned(step, [flat], rows, 1)[0], x.shape) if x.size else x

    def _check_binary(self, method: str) -> None:
        if (self.nin, self.nout) != (2, 1):
            raise ValueError(
                f"{self.__name__}.{method}: two operands with one result are needed, not {self.nin} with {self.nout}."
            )

    def _result_dtype(self, x: Array, y: Array) -> np.dtype[Any]:
        """Return the dtype that the function gives for operands of its own result's dtype and of y's."""
        dtype = x.dtype
        for _ in range(2):
            avals = ShapedArray((), dtype), ShapedArray((), y.dtype)
            program, _ = trace_to_jaxpr(lambda a, b: (as_array(self.function(a, b)),), avals, what=self.__name__)
            dtype = program.outvars[0].aval.dtype
        return dtype

    def _scanned(
        self, step: Callable[..., tuple[Any, ...]], carry: list[Array], rows: list[Array], carries: int
    ) -> list[Array]:
        avals = [*[c.aval.strong() for c in carry], *[r.aval.update(shape=r.shape[1:]).strong() for r in rows]]

        def body(*xs: Array) -> tuple[Any, ...]:
            outs = step(*xs)
            return *[cast(y, c.dtype) for y, c in zip(outs[:carries], carry, strict=True)], *outs[carries:]

        jaxpr, consts = trace_to_jaxpr(body, avals, what=self.__name__, function=self.function)
        strong = [lax.convert_element_type(v, v.dtype) for v in (*carry, *rows)]
        return list(control_flow.scan(jaxpr, consts, strong[:carries], strong[carries:], length=rows[0].shape[0]))


def _operand(name: str, a: ArrayLike, dtype: Any) -> Array:
    x = array_operand(name, a)
    return x if dtype is None else lax.convert_element_type(x, dtypes.canonical(dtype))


def _rows(x: Array, axes: tuple[int, ...]) -> Array:
    """Flatten `axes` into one axis, the first."""
    rest = [x.shape[d] for d in range(x.ndim) if d not in axes]
    return reshape(moveaxis(x, axes, tuple(range(len(axes)))), (math.prod(x.shape[d] for d in axes), *rest))


# ---- ufuncs whose reductions are functions of this package ---------------------------------------------------


def _by_primitive(name: str, primitive: Callable[..., Array], identity: int, combine: Callable[..., Array]) -> Any:
    """Make the reduction of integers and booleans by a primitive, for the ufunc `combine`."""

    def reduce(x: Array, axis: Axis, keepdims: bool, initial: ArrayLike | None, where: ArrayLike | None) -> Array:
        if dtypes.is_inexact(x.dtype):
            raise TypeError(f"{name}.reduce: elements must be integers or booleans, not {x.aval}.")
        neutral = bool(identity) if dtypes.is_bool(x.dtype) else identity
        return reductions.reduce_axes(name, x, axis, keepdims, primitive, neutral, where, initial, combine)

    return reduce


def _of_truth(combine: Callable[..., Array], reduce: Callable[..., Array]) -> Any:
    """Make the reduction for a logical ufunc from one without `initial`."""

    def reduce_truth(x: Array, axis: Axis, keepdims: bool, initial: ArrayLike | None, where: ArrayLike | None) -> Array:
        found = reduce(x, axis=axis, keepdims=keepdims, where=where)
        return found if initial is None else combine(found, initial)

    return reduce_truth


def _any_odd(x: Array, axis: Axis, keepdims: bool, where: ArrayLike | None) -> Array:
    mask = logic.truth("logical_xor", x)
    return _XOR(mask, axis=axis, keepdims=keepdims, initial=None, where=where)


def _log_sum(
    name: str, combine: Callable[..., Array], exp: Callable[..., Array], log: Callable[..., Array]
) -> Callable[..., Array]:
    """Make the reduction that computes the logarithm of the sum of real powers, without overflow."""

    def log_sum(x: Array, axes: Sequence[int]) -> Array:
        terms = reductions.wide(x)
        top = lax.stop_gradient(reductions.max(terms, axes, keepdims=True, initial=-np.inf))
        top = as_array(choose_between(lax.is_finite(top), top, 0))
        total = reductions.sum(exp(arithmetic.subtract(terms, top)), axes)
        return lax.convert_element_type(arithmetic.add(log(total), reshape(top, total.shape)), x.dtype)

    def reduce(x: Array, axis: Axis, keepdims: bool, initial: ArrayLike | None, where: ArrayLike | None) -> Array:
        y = inexact(f"{name}.reduce", x)
        return reductions.reduce_axes(f"{name}.reduce", y, axis, keepdims, log_sum, -np.inf, where, initial, combine)

    return reduce


def _cumulative_log_sum(name: str, scale: float) -> Callable[..., Array]:
    """Make the cumulative logarithm of the sum of powers of exp(`scale`)."""

    def accumulate(x: Array, axis: int) -> Array:
        y = inexact(f"{name}.accumulate", x)
        found = reduction.cumlogsumexp(lax.mul(reductions.wide(y), scale), axis)
        return lax.convert_element_type(lax.div(found, scale), y.dtype)

    return accumulate


_XOR = _by_primitive("bitwise_xor", reduction.reduce_xor, 0, logic.bitwise_xor)
_REDUCTIONS: Mapping[Any, Callable[..., Array]] = {
    arithmetic.add: reductions.sum,
    arithmetic.multiply: reductions.prod,
    arithmetic.maximum: reductions.max,
    arithmetic.minimum: reductions.min,
    logic.bitwise_and: _by_primitive("bitwise_and", reduction.reduce_and, -1, logic.bitwise_and),
    logic.bitwise_or: _by_primitive("bitwise_or", reduction.reduce_or, 0, logic.bitwise_or),
    logic.bitwise_xor: _XOR,
    logic.logical_and: _of_truth(logic.logical_and, reductions.all),
    logic.logical_or: _of_truth(logic.logical_or, reductions.any),
    logic.logical_xor: _of_truth(logic.logical_xor, _any_odd),
    elementary.logaddexp: _log_sum("logaddexp", elementary.logaddexp, elementary.exp, elementary.log),
    elementary.logaddexp2: _log_sum("logaddexp2", elementary.logaddexp2, elementary.exp2, elementary.log2),
}
_ACCUMULATIONS: Mapping[Any, Callable[..., Array]] = {
    arithmetic.add: reductions.cumsum,
    arithmetic.multiply: reductions.cumprod,
    arithmetic.maximum: reduction.cummax,
    arithmetic.minimum: reduction.cummin,
    elementary.logaddexp: _cumulative_log_sum("logaddexp", 1.0),
    elementary.logaddexp2: _cumulative_log_sum("logaddexp2", math.log(2)),
}
_LOGARITHMS = {
    table[f] for table in (_REDUCTIONS, _ACCUMULATIONS) for f in (elementary.logaddexp, elementary.logaddexp2)
}
_ROUNDED_ONCE = (arithmetic.add, arithmetic.multiply, elementary.logaddexp, elementary.logaddexp2)
_WRITES = {
    arithmetic.add: "add",
    arithmetic.subtract: "subtract",
    arithmetic.multiply: "multiply",
    arithmetic.maximum: "max",
    arithmetic.minimum: "min",
}
_GIVEN = ("nin", "nout", "nargs", "identity", "reduce", "accumulate", "reduceat", "outer", "at")


def make_ufuncs(namespace: Mapping[str, Any]) -> None:
    """Set the attributes and methods of ufuncs on the functions of a namespace that are ufuncs in NumPy."""
    for name, function in namespace.items():
        theirs = getattr(np, name, None)
        if isinstance(theirs, np.ufunc) and theirs.signature is None and isinstance(function, FunctionType):
            own = ufunc(function, theirs.nin, theirs.nout, function.__name__, theirs.identity)
            vars(function).update({name: getattr(own, name) for name in _GIVEN}, **{_KEY: own})
