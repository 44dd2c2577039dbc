"""The stages of compiling a function, to be looked at one by one: traced, lowered, compiled."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tapeless.lowering import dispatch, emit
from tapeless.lowering.array import DeviceArray
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.config import config
from tapeless.tracer.core import Tracer
from tapeless.tracer.jaxpr import ClosedJaxpr
from tapeless.tracer.types import ShapedArray, aval_of


class Program:
    """A compiled function of flat arguments, with what it needs to be called."""

    def __init__(self, traced: "Traced", device: Any) -> None:
        self._jaxpr, self._device, self._tree = traced.jaxpr, device, traced.out_tree
        jaxpr, consts = traced.jaxpr.jaxpr, traced.jaxpr.consts
        donated = () if config.debug_nans else tuple(len(consts) + i for i in traced.donated)  # nan is looked for again
        self.executable = dispatch.executable(jaxpr, device, donated, traced.options)
        self._call = self.executable.call
        self._consts = [dispatch.buffer_on(c, device) for c in consts]
        self._single = traced.out_tree is pytree.LEAF

    @property
    def run(self) -> Callable[[list[Any]], Any]:
        """The fastest way to call with buffers of the right types on the right device."""
        if self._single and not self._consts:
            return self.executable.call_single
        return self._call_buffers

    def _call_buffers(self, bufs: Sequence[Any]) -> Any:
        return pytree.unflatten(self._tree, self._call([*self._consts, *bufs]))

    def call(self, leaves: Sequence[Any]) -> Any:
        """Call with any concrete values."""
        arrays = [x if type(x) is DeviceArray else self._put(x) for x in leaves]
        outs = self._call([*self._consts, *[x.buf for x in arrays]])
        if config.debug_nans:
            dispatch.check_nans_in(self._jaxpr.jaxpr, outs, [*map(DeviceArray, self._consts), *arrays])
        return pytree.unflatten(self._tree, outs)

    def _put(self, x: Any) -> DeviceArray:
        return DeviceArray(dispatch.buffer_on(x, self._device))


class Traced:
    """A function as a program. `.jaxpr`, `.out_info`, `.lower()`."""

    def __init__(self, jaxpr: ClosedJaxpr, in_tree: Any, out_tree: Any, donated: tuple[int, ...], options: Any):
        self.jaxpr, self.in_tree, self.out_tree = jaxpr, in_tree, out_tree
        self.donated, self.options = donated, options

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results, in their structure."""
        return pytree.unflatten(self.out_tree, [ShapeDtypeStruct.of(aval) for aval in self.jaxpr.out_avals])

    def lower(self) -> "Lowered":
        """The program as a StableHLO module."""
        return Lowered(self)


class Lowered:
    """A program as a StableHLO module. `.as_text()`, `.compile()`."""

    def __init__(self, traced: Traced) -> None:
        self._traced = traced

    def as_text(self) -> str:
        """The module's text."""
        traced = self._traced
        donated = tuple(len(traced.jaxpr.consts) + i for i in traced.donated)
        return emit.module_text(traced.jaxpr.jaxpr, donated, traced.jaxpr.jaxpr.name)

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results, in their structure."""
        return self._traced.out_info

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
        return _in_avals(self._traced)

    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> "Compiled":
        """The module, compiled for the default device."""
        traced = self._traced
        options = {**traced.options, **(compiler_options or {})}
        again = Traced(traced.jaxpr, traced.in_tree, traced.out_tree, traced.donated, options)
        return Compiled(again)


class Compiled:
    """A compiled function: callable with arguments of exactly the types it was compiled for."""

    def __init__(self, traced: Traced) -> None:
        self._traced = traced
        self._program = Program(traced, dispatch.device_of(()))
        self._executable = self._program.executable

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = pytree.flatten((args, kwargs))
        name = self._traced.jaxpr.jaxpr.name
        if tree != self._traced.in_tree:
            raise TypeError(
                f"{name} was compiled for arguments of structure {self._traced.in_tree}, but called with {tree}."
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
        return self._program.call(leaves)

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
        return _in_avals(self._traced)

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

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results, in their structure."""
        return self._traced.out_info


def _in_avals(traced: Traced) -> Any:
    return pytree.unflatten(traced.in_tree, traced.jaxpr.in_avals)


class ShapeDtypeStruct:
    """Shape and dtype of an array, without the array."""

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
