"""StableHLO as text: types, constants, operations.

A `Function` collects the lines of one function of a module; `Value` is a name with its type. Operations are
printed in the generic form, so that one way of writing serves them all. Source: the StableHLO specification.
"""

import contextlib
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.lowering.xla_workarounds.dataflow import VIEWS, Dataflow
from tapeless.tracer import dtypes, name_stacks
from tapeless.tracer.caches import bound_entries
from tapeless.tracer.types import ShapedArray

_ELEMENTS = {
    "bool": "i1",
    **{f"int{n}": f"i{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{f"uint{n}": f"ui{n}" for n in (2, 4, 8, 16, 32, 64)},
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "float8_e4m3": "f8E4M3",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
    dtypes.float0.name: "i1",  # the tangents of integers, of which there is one: false
}


# Operations that are a pad, or that XLA may make one of, and calls of functions that may hold one.
_PADDING = frozenset(("pad", "concatenate", "dynamic_update_slice", "scatter", "func.call"))


class Value(NamedTuple):
    """A name in a function's text, and its type."""

    name: str
    aval: ShapedArray


class Function:
    """The text of one function being written."""

    def __init__(
        self,
        call: Callable[..., Sequence[Value]],
        location: Callable[[Any, str], str],
        inlined: set[Any],
        callbacks: list[Any],
        settles: bool = False,
        platform: str = "cpu",
        program: Any = None,
    ) -> None:
        self.looping = False  # is a loop's body being written? see in_place_loops.py
        self.settles: Final = settles
        self.overwritten: set[str] = set()  # names of values that the loop overwrites
        self.owned: set[str] = set()  # names of arguments that are not read after the call
        self._computed_from = 0  # the number of the first value that the block being written computes
        self.call: Final = call
        self._location = location
        self.inlined: Final = inlined
        self._callbacks = callbacks
        self.platform: Final = platform
        self.program: Final = program  # that the function computes
        self.lines: list[str] = []
        self.source: Any = None
        self.operation: str = ""  # the name of the primitive that is being emitted
        self.is_part: bool = False  # is what is being emitted a part of that primitive?
        self.outer: str = ""  # the name stack of the loops and branches around, within this function
        self.place: str = ""
        self._n = 0
        self._memo: dict[Any, Value] = {}
        self._combinations: dict[Any, str] = {}
        self._numbers: dict[str, Any] = {}  # scalar constants by name
        self.dataflow: Dataflow | None = None  # for functions that write into parts of arrays
        self._read: list[str] = []  # names that the block being written reads
        self._inside: list[str] = []  # names that the regions of the operation to come read
        self._cuts: dict[str, bool] = {}  # values computed from padded ones: True if from a reshape of one
        self.last_in_turn: tuple[Value, ...] = ()  # results of the last operation in turn of the block being written
        self._turns_inside = False  # are there such operations in the regions of the operation to come?

    def at(self, source: Any) -> None:
        """Set the user's source line for the operations to come."""
        self.source, self.place = source, self._location(source, self.outer)

    def enter(self) -> None:
        """Begin a region of the operation that is being written: its name stack is around those to come."""
        if self.source is not None and self.source.stack:
            self.outer = name_stacks.within(self.outer, name_stacks.inside(self.source.stack))
            self.at(None)

    @contextlib.contextmanager
    def composing(self) -> Generator[None]:
        """Emit parts of one operation within the block."""
        before, self.is_part = self.is_part, True
        try:
            yield
        finally:
            self.is_part = before

    def is_called_with(self, arguments: Sequence[Value]) -> None:
        """Note the arguments of a function that others call: nothing is known of them."""
        self._cuts.update([(v.name, True) for v in arguments])

    def fresh(self, n: int = 1) -> list[str]:
        """Return n new names."""
        first = self._n
        self._n += n
        return [f"%{i}" for i in range(first, first + n)]

    def callback(self, function: Callable[..., Any]) -> int:
        """Register a host callback; return the number by which the module calls it."""
        self._callbacks.append(function)
        return len(self._callbacks) - 1

    def unsupported(self, what: str, advice: str = "") -> NotImplementedError:
        """Return an error about an operation that the module's platform lacks, with the user's line."""
        place = f"At {self.source.describe()}." if self.source else ""
        lines = [f"{what}; the program is for {self.platform}.", place, advice]
        return NotImplementedError("\n  ".join(filter(None, lines)))

    def write(self, line: str) -> None:
        """Append a line of text, with the current location."""
        self.lines.append(f"    {line}{self.place}")

    def op(
        self, name: str, operands: Sequence[Value], out: ShapedArray, attributes: str = "", region: str = ""
    ) -> Value:
        """Emit an operation of one result: `op("add", [x, y], aval)`; attributes as MLIR's text, region in braces."""
        if region and self._turns_inside:
            return self.ops(name, operands, [out], attributes, region)[0]
        result = Value(f"%{self._n}", out)
        self._n += 1
        self._write(f"{result.name} = ", [result], name, operands, tensor(out), attributes, region)
        return result

    def ops(
        self,
        name: str,
        operands: Sequence[Value],
        outs: Sequence[ShapedArray],
        attributes: str = "",
        region: str = "",
    ) -> list[Value]:
        """Emit an operation of several results. `name` is StableHLO's, or begins with its dialect: `chlo.erf`."""
        if region and self._turns_inside:
            self._turns_inside = False
            return self.in_turn(name, operands, outs, attributes, region)
        if len(outs) == 1:
            return [self.op(name, operands, outs[0], attributes, region)]
        result = f"%{self._n}"
        self._n += 1
        results = [Value(f"{result}#{i}", aval) for i, aval in enumerate(outs)]
        left = f"{result}:{len(outs)} = " if outs else ""
        self._write(left, results, name, operands, f"({', '.join(map(tensor, outs))})", attributes, region)
        return results

    def in_turn(
        self,
        name: str,
        operands: Sequence[Value],
        outs: Sequence[ShapedArray],
        attributes: str = "",
        region: str = "",
    ) -> list[Value]:
        """Emit an operation that waits inside of XLA's threads: on the CPU it waits for the last such one before it.

        A thread of XLA's pool that computes a batch of factorizations, or a Fourier transform, hands parts of it to the
        pool and waits for them. If all threads wait, none computes the parts, and the program never ends: so do twelve
        batches of Cholesky factorizations on two cores (jaxlib 0.10.2). See docs/xla_defects.md.
        """
        if self.platform != "cpu":
            return self.ops(name, operands, outs, attributes, region)
        operands = list(operands)
        if self.last_in_turn:
            for place in _waiting(operands, bool(region)):
                operands[place] = self._mixed(operands[place], self._zero(self.last_in_turn))
        results = self.ops(name, operands, outs, attributes, region)
        # XLA may find that a loop or a branch returns an operand; an operation is behind each of its results.
        self.last_in_turn = tuple(v for v in results if v.aval.size and dtypes.bits_of(v.aval.dtype) >= 8)
        if not region:
            self.last_in_turn = self.last_in_turn[:1]
        return results

    def _write(
        self,
        left: str,
        results: Sequence[Value],
        name: str,
        operands: Sequence[Value],
        out_types: str,
        attributes: str,
        region: str,
    ) -> None:
        full_name = name if "." in name else "stablehlo." + name
        names, avals = zip(*operands) if operands else ((), ())
        arguments = ", ".join(names)
        properties = f" <{{{attributes}}}>" if attributes else ""
        body = f" ({region})" if region else ""
        types = f"({', '.join(map(tensor, avals))}) -> {out_types}"
        if self._cuts or name in _PADDING:
            self._note_cuts(name, names, results)
        if self.dataflow is not None:
            self._note(name, operands, results, (attributes, types))
        self.lines.append(f'    {left}"{full_name}"({arguments}){properties}{body} : {types}{self.place}')

    def _note_cuts(self, kind: str, reads: Sequence[str], results: Sequence[Value]) -> None:
        """Record what is computed from a padded value, and whether this was reshaped in between."""
        found = [self._cuts[name] for name in reads if name in self._cuts]
        if found or kind in _PADDING:
            is_cut = kind == "func.call" or any(found) or (bool(found) and kind == "reshape")
            self._cuts.update([(v.name, is_cut) for v in results])

    def may_be_padded_rows(self, x: Value) -> bool:
        """Tell whether a value may be computed from the reshape of a padded one, here or in a function around."""
        return self._cuts.get(x.name, False)

    def _note(self, kind: str, operands: Sequence[Value], results: Sequence[Value], how: Any) -> None:
        """Record the operands of an operation in `dataflow`, and among the reads of its block."""
        inside, self._inside = self._inside, []
        reads = [v.name for v in operands]
        self._read += [*reads, *inside]
        if self.dataflow is not None:
            view = kind in VIEWS and results[0].aval.size == operands[0].aval.size
            self.dataflow.add([v.name for v in results], kind, reads, inside=inside, how=how, view=view)

    def constant(self, value: Any, aval: ShapedArray) -> Value:
        """Emit a constant of type `aval`, from a scalar or an array of that shape; equal ones only once in a block."""
        array = np.zeros((), bool) if aval.dtype == dtypes.float0 else np.asarray(value, aval.dtype)
        key = (array.tobytes(), array.shape, aval.shape, aval.dtype)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self.op("constant", [], aval.strong(), f"value = {dense(array, aval)}")
            if not aval.shape:
                self._numbers[found.name] = array[()]
        return found

    def number(self, x: Value) -> Any:
        """Return the number that a scalar constant holds; None if x is no scalar constant."""
        return self._numbers.get(x.name)

    def broadcast(self, x: Value, shape: tuple[int, ...], dims: Sequence[int] = ()) -> Value:
        """Broadcast x along new axes; axis i becomes dims[i]. Nothing is emitted if the shape is the same."""
        if x.aval.shape == shape:
            return x
        key = (x.name, shape, tuple(dims))
        found = self._memo.get(key)
        if found is None:
            out = x.aval.update(shape=shape)
            found = self._memo[key] = self.op("broadcast_in_dim", [x], out, f"broadcast_dimensions = {array(dims)}")
        return found

    def compare(self, x: Value, y: Value, direction: str) -> Value:
        """Emit x `direction` y (EQ NE LT LE GT GE), elementwise; floats that are unordered compare as in IEEE 754.

        Integers of 2 bits are compared as 8 bits: XLA finds none of them equal to a negative constant.
        """
        dtype = x.aval.dtype
        if dtypes.is_integer(dtype) and dtypes.bits_of(dtype) < 4:
            wide = "int8" if dtypes.is_signed(dtype) else "uint8"
            return self.compare(self.convert(x, np.dtype(wide)), self.convert(y, np.dtype(wide)), direction)
        kind = "FLOAT" if dtypes.is_inexact(dtype) else "SIGNED" if dtypes.is_signed(dtype) else "UNSIGNED"
        attributes = (
            f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
            f"compare_type = #stablehlo<comparison_type {kind}>"
        )
        return self.op("compare", [x, y], x.aval.update(dtype=np.dtype(bool), weak_type=False), attributes)

    def convert(self, x: Value, dtype: Any) -> Value:
        """Convert x to another element type."""
        return x if x.aval.dtype == dtype else self.op("convert", [x], x.aval.update(dtype=np.dtype(dtype)))

    def hidden(self, x: Value) -> Value:
        """Return x, of floating point, in a form that XLA and LLVM know nothing of, even if they know x.

        Its bits are combined with the number of the replica, 0, which only the runtime knows.
        """
        return self._mixed(x, self._zero())

    def _zero(self, of: Sequence[Value] = ()) -> Value:
        """Emit the number of the replica, 0, as an integer of 32 bits; 0 that is computed from all of some values."""
        aval = ShapedArray((), np.dtype(np.uint32))
        key = "the number of the replica", *of
        if key not in self._memo:
            zero = self._zero() if of else self.op("replica_id", [], aval)
            for bits in map(self._first_bits, of):
                other = self.op("and", [self._zero(), bits], aval)
                zero = self.op("or", [zero, other], aval)
            self._memo[key] = zero
        return self._memo[key]

    def _first_bits(self, x: Value) -> Value:
        """Return the bits of the first element of x, as an integer of 32 bits."""
        first = self.slice(x, [0] * x.aval.ndim, [1] * x.aval.ndim)
        if dtypes.is_complex(x.aval.dtype):
            first = self.op("real", [first], first.aval.update(dtype=dtypes.real_part_dtype(x.aval.dtype)))
        if dtypes.is_inexact(first.aval.dtype):
            first = self.op("bitcast_convert", [first], first.aval.update(dtype=_unsigned(first.aval.dtype)))
        first = self.convert(first, np.dtype(np.uint32))
        return self.op("reshape", [first], first.aval.update(shape=())) if x.aval.shape else first

    def _mixed(self, x: Value, zero: Value) -> Value:
        """Combine the bits of x with those of a scalar."""
        aval = x.aval.strong()
        if dtypes.is_complex(aval.dtype):
            part = aval.update(dtype=dtypes.real_part_dtype(aval.dtype))
            parts = [self._mixed(self.op(name, [x], part), zero) for name in ("real", "imag")]
            return self.op("complex", parts, aval)
        plain = not dtypes.is_inexact(aval.dtype)
        bits = aval.dtype if plain else _unsigned(aval.dtype)
        key = zero.name, bits
        if key not in self._memo:
            self._memo[key] = self.convert(zero, bits)
        integers = aval.update(dtype=bits)
        shown = x if plain else self.op("bitcast_convert", [x], integers)
        mixed = self.op("or", [shown, self.broadcast(self._memo[key], aval.shape)], integers)
        return mixed if plain else self.op("bitcast_convert", [mixed], aval)

    def slice(self, x: Value, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] = ()) -> Value:
        """Slice the elements of x from `starts`, below `limits`, in steps of `strides` (default: 1)."""
        steps = strides or [1] * x.aval.ndim
        shape = tuple([-(-(limit - start) // step) for start, limit, step in zip(starts, limits, steps, strict=True)])
        cut = f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array(steps)}"
        part = self.op("slice", [x], x.aval.update(shape=shape), cut)
        if self.dataflow is not None and set(steps) <= {1}:
            self.dataflow.window(part.name, x.name, starts)
        return part

    def is_computed_here(self, x: Value) -> bool:
        """Tell whether a value is computed (or owned) by this function, in the same step of the loop around, if any."""
        if x.name.startswith("%arg"):
            return x.name in self.owned
        return int(x.name[1:].partition("#")[0]) >= self._computed_from

    def block(self, avals: Sequence[ShapedArray], body: "Callable[..., Sequence[Value]]") -> str:
        """Write a region of one block, `{ ^bb0(%a: t, ...): ... return }`, with arguments of these types."""
        names = self.fresh(len(avals))
        outer, self.lines, memo, self._memo = self.lines, [], self._memo, {}
        (last, self.last_in_turn), (turns, self._turns_inside) = (self.last_in_turn, ()), (self._turns_inside, False)
        (read, self._read), (inside, self._inside) = (self._read, []), (self._inside, [])
        before, self._computed_from = self._computed_from, self._n if self.looping else self._computed_from
        results = body(*[Value(n, aval) for n, aval in zip(names, avals)])
        self._inside = [*inside, *self._read, *[v.name for v in results]]
        lines, self.lines, self._memo, self._read = self.lines, outer, memo, read
        self._turns_inside = turns or bool(self.last_in_turn)
        self.last_in_turn = last
        self._computed_from = before
        arguments = ", ".join(f"{n}: {tensor(aval)}" for n, aval in zip(names, avals))
        returned = ", ".join(v.name for v in results)
        types = ", ".join(tensor(v.aval) for v in results)
        end = f'"stablehlo.return"({returned}) : ({types}) -> ()'
        return "\n".join([f"{{ ^bb0({arguments}):", *lines, f"    {end} }}"])

    def combination(self, combine: "Callable[[Function, Value, Value], Value]", scalar: ShapedArray) -> str:
        """Write a region that combines two scalars, as reductions do; one text for all on the same source line."""
        key = combine, scalar, self.place
        if key not in self._combinations:
            self._combinations[key] = self.block([scalar, scalar], lambda a, b: [combine(self, a, b)])
        return self._combinations[key]


def _waiting(operands: Sequence[Value], has_region: bool) -> list[int]:
    """Choose the operands that wait: the smallest; of loops and branches all single elements, if there are such.

    If XLA knew the counter of a loop, it would write one step inline, whose operations need not read another operand.
    """
    found = [i for i, v in enumerate(operands) if v.aval.size and dtypes.bits_of(v.aval.dtype) >= 8]
    single = [i for i in found if has_region and operands[i].aval.size == 1]
    return single or sorted(found, key=lambda i: operands[i].aval.size)[:1]


def _unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"uint{dtypes.bits_of(dtype)}")


class _Tensors(dict[ShapedArray, str]):
    """MLIR's names of types, cached: `tensor<3x2xf32>`."""

    def __missing__(self, aval: ShapedArray) -> str:
        sizes = "".join([f"{n}x" for n in aval.shape])
        found = bound_entries(self, _TENSORS_LIMIT)[aval] = f"tensor<{sizes}{element(aval.dtype)}>"
        return found


_tensors = _Tensors()
_TENSORS_LIMIT = 4096
tensor: Callable[[ShapedArray], str] = _tensors.__getitem__


def element(dtype: np.dtype[Any]) -> str:
    """Return MLIR's name of an element type. Raises: TypeError if there is none."""
    try:
        return _ELEMENTS[dtype.name]
    except KeyError:
        raise TypeError(f"arrays of {dtype} cannot be computed with on a device.") from None


def dense(array: np.ndarray[Any, Any], aval: ShapedArray) -> str:
    """Print an exact constant of any dtype; a single element stands for all elements (splat)."""
    if array.size == 1:
        return f"dense<{_element_text(array.reshape(()))}> : {tensor(aval)}"
    if array.size == 0:
        return f"dense<> : {tensor(aval)}"
    if array.dtype == np.bool_:
        return f"dense<{str(array.tolist()).lower()}> : {tensor(aval)}"
    return f'dense<"0x{np.ascontiguousarray(array).tobytes().hex().upper()}"> : {tensor(aval)}'


def array(items: Sequence[int], kind: str = "i64") -> str:
    """Print `array<i64: 0, 1>`."""
    return f"array<{kind}: {', '.join(map(str, items))}>" if items else f"array<{kind}>"


def _element_text(x: np.ndarray[Any, Any]) -> str:
    kind = x.dtype.kind
    if kind == "b":
        return "true" if x else "false"
    if kind in "iu" or dtypes.is_integer(x.dtype):
        return str(int(x))
    if kind == "c":
        return f"({_element_text(x.real)}, {_element_text(x.imag)})"
    return f"0x{x.tobytes()[::-1].hex().upper()}"
