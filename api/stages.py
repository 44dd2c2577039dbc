"""The stages of compiling a function, to be looked at one by one: traced, lowered, compiled."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tapeless.describing import arguments, structure
from tapeless.lowering import dispatch, emit
from tapeless.lowering.array import DeviceArray, duplicate
from tapeless.lowering.compile import check_distinct, check_live
from tapeless.tracer import dtypes, narrowing, pytree
from tapeless.tracer.config import config
from tapeless.tracer.core import Tracer
from tapeless.tracer.jaxpr import ClosedJaxpr, Literal
from tapeless.tracer.types import ShapedArray, aval_of


class Program:
    """A compiled function of flat arguments, with what it needs to be called."""

    def __init__(self, traced: "Traced", device: Any) -> None:
        self.traced = traced
        self._jaxpr, self._device, self._tree = traced.jaxpr, device, traced.out_tree
        jaxpr, consts = traced.jaxpr.jaxpr, traced.jaxpr.consts
        # With debug_nans nothing is donated: nan is looked for once more.
        self._donated = () if config.debug_nans else tuple(len(consts) + i for i in traced.donated)
        self.executable = dispatch.executable(jaxpr, device, self._donated, traced.options)
        self._call = self._call_donating if self._donated else self.executable.call
        self._consts = [dispatch.buffer_on(c, device) for c in consts]
        self._single = traced.out_tree is pytree.LEAF

    @property
    def run(self) -> Callable[[list[Any]], Any]:
        """The fastest way to call with buffers of the right types on the right device."""
        if self._single and not self._consts and not self._donated:
            return self.executable.call_single
        return self._call_buffers

    def _call_buffers(self, bufs: Sequence[Any]) -> Any:
        return pytree.unflatten(self._tree.snapshot(), self._call([*self._consts, *bufs]))

    def call(self, leaves: Sequence[Any]) -> Any:
        """Call with any concrete values."""
        arrays = [x if type(x) is DeviceArray else self._put(x) for x in leaves]
        outs = self._call([*self._consts, *[x.buf for x in arrays]])
        if config.debug_nans:
            dispatch.check_nans_in(self._jaxpr.jaxpr, outs, [*map(DeviceArray, self._consts), *arrays])
        return pytree.unflatten(self._tree.snapshot(), outs)

    def _call_donating(self, bufs: Sequence[Any]) -> Any:
        """Check first what jaxlib would print about on stderr, before it raises."""
        check_live(bufs)
        check_distinct(bufs, self._donated)
        return self.executable.call(bufs)

    def _put(self, x: Any) -> DeviceArray:
        there = DeviceArray(dispatch.buffer_on(x, self._device))
        return duplicate(there) if self._donated else there  # equal numbers share their memory


class Traced:
    """A function as a program. `.jaxpr`, `.out_info`, `.lower()`."""

    def __init__(
        self, jaxpr: ClosedJaxpr, in_tree: Any, out_tree: Any, donated: tuple[int, ...], options: Any, function: str
    ) -> None:
        self.jaxpr, self.in_tree, self.out_tree = jaxpr, in_tree, out_tree
        self.donated, self.options, self.function = donated, options, function
        self.narrowings = narrowing.narrowings(jaxpr.jaxpr)
        for found in self.narrowings:
            if isinstance(found.what, Literal):
                narrowing.check_fits(found, found.what.value, f"jit: a number in {function}")

    def check_fit(self, leaves: Sequence[Any]) -> None:
        """Raise OverflowError for a weak integer among the arguments that is used as a dtype it does not fit."""
        before = len(self.jaxpr.consts)
        for found in self.narrowings:
            if isinstance(found.what, int) and found.what >= before:
                i = found.what - before
                narrowing.check_fits(found, leaves[i], f"{self._whose(i)} of {self.function}")

    def _whose(self, i: int) -> str:
        paths = pytree.leaves_with_path(pytree.unflatten(self.in_tree, range(self.in_tree.num_leaves)))
        return f"jit: argument {pytree.keystr(paths[i][0][1:])}"

    def __repr__(self) -> str:
        return f"<Traced {self.signature()}>"

    def signature(self) -> str:
        """`loss(float32[3], n=int32[]) -> float32[]`: its name and types."""
        program = self.jaxpr
        given, results = arguments(self.in_tree, program.in_avals), structure(self.out_tree, program.out_avals)
        return f"{program.jaxpr.name}{given} -> {results}"

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results, in their structure."""
        return pytree.unflatten(self.out_tree, [ShapeDtypeStruct.of(aval) for aval in self.jaxpr.out_avals])

    def lower(self) -> "Lowered":
        """The program as a StableHLO module."""
        return Lowered(self)


class _Stage:
    """What became of a traced function: its arguments and results are those of that."""

    def __init__(self, traced: Traced) -> None:
        self._traced = traced

    @property
    def in_tree(self) -> Any:
        """The structure of `(args, kwargs)`, static ones left out."""
        return self._traced.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the results."""
        return self._traced.out_tree

    @property
    def in_avals(self) -> Any:
        """Types of the arguments, in their structure."""
        return pytree.unflatten(self._traced.in_tree, self._traced.jaxpr.in_avals)

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results, in their structure."""
        return self._traced.out_info


class Lowered(_Stage):
    """A program as a StableHLO module. `.as_text()`, `.compile()`."""

    def __repr__(self) -> str:
        return f"<Lowered {self._traced.signature()}>"

    def as_text(self) -> str:
        """The module's text."""
        traced = self._traced
        donated = tuple(len(traced.jaxpr.consts) + i for i in traced.donated)
        return emit.module_text(traced.jaxpr.jaxpr, donated, traced.jaxpr.jaxpr.name)

    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> "Compiled":
        """The module, compiled for the default device."""
        traced = self._traced
        options = {**traced.options, **(compiler_options or {})}
        again = Traced(traced.jaxpr, traced.in_tree, traced.out_tree, traced.donated, options, traced.function)
        return Compiled(again)


class Compiled(_Stage):
    """A compiled function: callable with arguments of exactly the types it was compiled for."""

    def __init__(self, traced: Traced) -> None:
        super().__init__(traced)
        self._program = Program(traced, dispatch.device_of(()))
        self._executable = self._program.executable

    def __repr__(self) -> str:
        return f"<Compiled {self._traced.signature()} for {self._executable.device}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = pytree.flatten((args, kwargs))
        name = self._traced.jaxpr.jaxpr.name
        if tree != self._traced.in_tree:
            raise TypeError(
                f"{name} was compiled for arguments {arguments(self._traced.in_tree, self._traced.jaxpr.in_avals)}, "
                f"but called with {arguments(tree, leaves)}."
            )
        for i, (x, want) in enumerate(zip(leaves, self._traced.jaxpr.in_avals, strict=True)):
            have = aval_of(x)
            if have.shape != want.shape or have.dtype != want.dtype:
                raise TypeError(f"{name} was compiled for {want} as argument leaf {i}, but called with {have}.")
            if isinstance(x, Tracer):
                raise TypeError(
                    f"{name} is compiled, and a compiled program cannot be transformed: argument leaf {i} is traced, "
                    f"{have}.\n  Call the jitted function instead."
                )
        self._traced.check_fit(leaves)
        return self._program.call(leaves)

    def cost_analysis(self) -> Any:
        """XLA's counts: flops, bytes accessed, transcendentals."""
        return self._executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Sizes in bytes: arguments, outputs, aliases, temporaries, generated code."""
        return self._executable.memory_analysis()

    def as_text(self) -> str:
        """The optimised program, as XLA prints it."""
        return self._executable.as_text()

    def serialize(self) -> bytes:
        """The executable as bytes, for this version of the runtime and this kind of machine only."""
        return self._executable.serialize()


class ShapeDtypeStruct:
    """Shape and dtype of an array, without the array.

    Args:
      dtype: of arrays, as NumPy names it; a Python type is taken in the default width.
      weak_type: whether it gives way to other dtypes, as Python numbers do.
    Raises: TypeError if there is no such dtype, or the shape is no sequence.
    """

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: Sequence[int], dtype: Any, *, weak_type: bool = False) -> None:
        self.shape, self.dtype, self.weak_type = tuple(shape), dtypes.canonical(dtype), weak_type

    @classmethod
    def of(cls, aval: ShapedArray) -> "ShapeDtypeStruct":
        """That of a type."""
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return (self.shape, self.dtype, self.weak_type) == (other.shape, other.dtype, other.weak_type)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{weak})"
