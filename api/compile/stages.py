"""Ahead-of-time compilation in stages: traced, lowered, compiled; saved and loaded."""

import functools
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tapeless.arguments import signatures
from tapeless.arguments.names import name_of_leaf
from tapeless.arguments.signatures import Signature
from tapeless.compile.references import ProgramReferences
from tapeless.lowering import devices, dispatch, emit
from tapeless.lowering.argument_errors import ArgumentError
from tapeless.lowering.array import DeviceArray, duplicate, forget_view
from tapeless.lowering.compile import Executable, MemoryAnalysis, check_distinct, check_live, note_donation, parse
from tapeless.lowering.key_array import run_followed, wrap_buffer
from tapeless.lowering.memory_errors import Exhausted
from tapeless.lowering.xla_workarounds import compat
from tapeless.tracer import dtypes, pytree, source
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr, Literal
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray, aval_of

if TYPE_CHECKING:
    from tapeless.compile import serialization
    from tapeless.interpreters import structured_constants
    from tapeless.lowering import donation
else:
    donation = LateModule("tapeless.lowering.donation")
    serialization = LateModule("tapeless.compile.serialization")
    structured_constants = LateModule("tapeless.interpreters.structured_constants")

CompilerOptions = dict[str, str | bool]  # of XLA, by name


class KnownCall(NamedTuple):
    """A way to call a program: `call(args, kwargs)` for arguments of one structure, classes and types, else `MISSED`.

    settings: those that it is for.
    """

    settings: object
    call: Callable[[tuple[Any, ...], dict[str, Any]], Any]


class CompiledCall:
    """Compiled function of flat arguments, with the constants and types that a call needs.

    Args:
      signature: types of arguments and results.
      executable: takes the constants before the arguments; inputs at positions `donated` are given up.
      consts: buffers on the executable's device.
      references: those that go in with the arguments and come out with the results, if there are any.
      jaxpr, options: what was compiled, and the compiler's options; None if that is not known.
    budget: says which budget of the program's gradients would fit, when it runs out of memory.
    """

    budget: Callable[[Exhausted], str] | None = None

    def __init__(
        self,
        signature: Signature,
        executable: Executable,
        consts: Sequence[Any],
        donated: tuple[int, ...],
        jaxpr: Jaxpr | None,
        options: Mapping[str, Any] | None = None,
        references: ProgramReferences | None = None,
    ) -> None:
        self.references: Final = references
        self.signature: Final = signature
        self.executable: Final = executable
        self.donated: Final = donated
        self._options = options
        self._jaxpr, self._device, self._tree = jaxpr, executable.device, signature.out_tree
        self._call, self._taken = executable.call, ()
        if donated:
            inputs = [i - len(consts) for i in donated]
            taken = donation.match_donated(signature.in_avals, executable.out_avals, inputs).taken
            self._call, self._taken = self._call_donating, tuple(taken)
        self.consts: Final = list(consts)
        self._followed: ClosedJaxpr | None = None  # the program as it was traced, if its keys are followed
        self.kinds: set[tuple[type, ...]] = set()  # classes of arguments that were given
        self.known_calls: dict[tuple[type, ...], KnownCall | None] = {}  # by these; None: there is no code for it

    @classmethod
    def compiled(cls, traced: "Traced", device: Any) -> "CompiledCall":
        """Compile a traced function for a device."""
        jaxpr, consts = traced.to_compile.jaxpr, traced.to_compile.consts
        # Where results must be finite nothing is donated: what is not is looked for once more.
        donated = () if dispatch.are_watched() else tuple(len(consts) + i for i in traced.donated)
        if donated:
            _warn_of_unused(traced, donated)
        executable = dispatch.executable(jaxpr, device, donated, traced.options)
        bufs = [dispatch.buffer_on(c, device) for c in consts]
        call = cls(traced.type, executable, bufs, donated, jaxpr, traced.options, traced.references)
        call._followed = traced.jaxpr if config.debug_key_reuse else None
        call.budget = traced.budget
        executable.budget = weakref.WeakMethod(call.fitting_budget)  # of a call that is gone, nobody knows
        return call

    def fitting_budget(self, memory: Exhausted) -> str:
        """Say which budget of the gradients in the program would fit; "" if that is not known."""
        return self.budget(memory) if self.budget else ""

    def saveable(self) -> Executable:
        """Return the executable, compiled once more if it was found in the cache on disk."""
        if not self.executable.restored or self._jaxpr is None:
            return self.executable
        return dispatch.compiled_anew(self._jaxpr, self.executable.device, self.donated, self._options)

    @property
    def run(self) -> Callable[[list[Any]], Sequence[Any]]:
        """Map buffers of the right types and device, those of constants first, to results as `Executable.run` gives."""
        if not self.consts and not self.donated:
            return self.executable.run
        return self._run_buffers

    def _run_buffers(self, bufs: list[Any]) -> Sequence[Any]:
        try:
            if not self.donated:
                return self.executable.run(bufs)
            self._check_donated(bufs)
            results = self.executable.run(bufs)
            self._check_taken(bufs)
            return results
        except ArgumentError as error:
            raise error.after(len(self.consts)) from None

    def call(self, leaves: Sequence[Any]) -> Any:
        """Call with any concrete values."""
        refs = self.references
        inputs = leaves if refs is None else refs.inputs(leaves)
        arrays = [x if dispatch.is_on(x, self._device) else self._put(x) for x in inputs]
        for i in self.donated:
            forget_view(arrays[i - len(self.consts)])
        try:
            outs = self._run(arrays)
        except ArgumentError as error:
            raise error.after(len(self.consts)) from None
        if dispatch.are_watched():
            self._check_finite(outs, arrays)
        outs = dispatch.committed_as(inputs, outs)
        return pytree.unflatten(self._tree.snapshot(), outs if refs is None else refs.results(leaves, outs))

    def _run(self, arrays: Sequence[DeviceArray]) -> Sequence[DeviceArray]:
        bufs = [*self.consts, *[x.buf for x in arrays]]
        if self._followed is None:
            return self._call(bufs)
        return run_followed(self._followed.jaxpr, [*self._followed.consts, *arrays], lambda: self._call(bufs))

    def _check_finite(self, outs: Sequence[DeviceArray], arrays: Sequence[DeviceArray]) -> None:
        if self._jaxpr is not None:
            consts = map(wrap_buffer, self.consts, self._jaxpr.in_avals)
            dispatch.check_finite_program(self._jaxpr, outs, [*consts, *arrays], len(self.consts))
        elif found := dispatch.nonfinite_in(outs):
            raise FloatingPointError(
                f"{found} in a result of {self.signature.name}, which was loaded: its lines are not known."
            )

    def _call_donating(self, bufs: Sequence[Any]) -> Any:
        self._check_donated(bufs)
        results = self.executable.call(bufs)
        self._check_taken(bufs)
        return results

    def _check_taken(self, bufs: Sequence[Any]) -> None:
        """Warn of donated memory that the runtime did not take, as it does not if it is lent to somebody."""
        n = len(self.consts)
        kept = [i for i in self._taken if not bufs[n + i].is_deleted()]
        if kept:
            named = ", ".join([f"{self.signature.named_argument(i)}: {self.signature.in_avals[i]}" for i in kept])
            source.warn(
                f"Some donated buffers were not usable: {named}.\n"
                "  Their memory is lent to a NumPy array (np.asarray), or to another library (dlpack), so they stay.\n"
                "  Give up what shares it, or let it have a copy (np.array)."
            )

    def _check_donated(self, bufs: Sequence[Any]) -> None:
        """Check donated buffers before jaxlib does, which would print to stderr before it raises."""
        check_live(bufs)
        check_distinct(bufs, self.donated)
        note_donation()

    def _put(self, x: Any) -> DeviceArray:
        there = dispatch.on_device(x, self._device)
        return duplicate(there) if self.donated else there  # equal numbers share their memory


@dataclass(frozen=True)
class ArgInfo:
    """An argument of a function that is compiled: its type, and whether its memory is given up."""

    _aval: ShapedArray
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self._aval.shape

    @property
    def dtype(self) -> Any:
        """Type of the elements."""
        return self._aval.dtype


class _Stage:
    """A stage of compiling a function, with the types of its arguments and results.

    Args:
      donated: positions of the arguments whose memory is given up.
    """

    def __init__(self, signature: Signature, donated: Sequence[int]) -> None:
        self.type: Final = signature
        self.donated: Final = tuple(donated)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Positions of the arguments whose memory is given up, counted by leaves."""
        return self.donated

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each argument, in the structure of `(args, kwargs)`."""
        infos = [ArgInfo(aval, i in self.donated) for i, aval in enumerate(self.type.in_avals)]
        return pytree.unflatten(self.in_tree, infos)

    @property
    def in_tree(self) -> Any:
        """The structure of `(args, kwargs)`, static ones left out."""
        return self.type.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the results."""
        return self.type.out_tree

    @property
    def in_avals(self) -> Any:
        """Types of the arguments, in their structure."""
        return pytree.unflatten(self.type.in_tree, self.type.in_avals)

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results, in their structure."""
        return pytree.unflatten(self.out_tree, [ShapeDtypeStruct.of(aval) for aval in self.type.out_avals])


class Traced(_Stage):
    """A function as a program. `.jaxpr`, `.out_info`, `.lower()`.

    budget: says which budget of the gradients in it would fit, when it runs out of memory; None if nobody asked for it.
    """

    budget: Callable[[Exhausted], str] | None = None

    def __init__(
        self,
        jaxpr: ClosedJaxpr,
        in_tree: Any,
        out_tree: Any,
        donated: tuple[int, ...],
        options: Any,
        function: str,
        names: tuple[str, ...],
        references: ProgramReferences | None = None,
    ) -> None:
        self.jaxpr: Final = jaxpr
        self.options: Final = options
        self.references: Final = references
        found = signatures.narrowings(jaxpr.jaxpr)
        for each in found:
            if isinstance(each.what, Literal):
                signatures.check_fits(each, each.what.value, lambda: f"jit: a number in {function}")
        super().__init__(Signature.of_program(jaxpr, in_tree, out_tree, function, names, found), donated)

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self.type.name

    @property
    def out_avals(self) -> Any:
        """Types of the results, in their structure."""
        return pytree.unflatten(self.out_tree, self.type.out_avals)

    def __repr__(self) -> str:
        return f"<Traced {self.type}>"

    @functools.cached_property
    def to_compile(self) -> ClosedJaxpr:
        """Return the program as it is compiled: constants that are functions of their indices are equations."""
        return structured_constants.with_structure(self.jaxpr)

    def signature(self) -> str:
        """Print name and types: `loss(float32[3], n=int32[]) -> float32[]`."""
        return str(self.type)

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> "Lowered":
        """Lower the program to a StableHLO module.

        Args:
          lowering_platforms: a platform, "cpu", "cuda" or "tpu", as a sequence of one; by default the one that is used
            now. For another one, which need not be there, the module can be read, and not compiled.
        Raises: ValueError for several platforms, or one that there is not.
        """
        return Lowered(self, _platform(lowering_platforms))


def _warn_of_unused(traced: Traced, donated: Sequence[int]) -> None:
    """Warn of donated arguments whose memory no result can take; `donated` counts the constants before them."""
    program, function = traced.to_compile, traced.type.function
    in_avals, out_avals = program.jaxpr.in_avals, program.jaxpr.out_avals
    unused = donation.match_donated(in_avals, out_avals, donated).unused
    if not unused:
        return
    names, n = traced.type.names, len(program.consts)
    leaves = {i: name_of_leaf(names, traced.in_tree, i - n) for i in unused}
    named = ", ".join(f"{leaves[i]}: {in_avals[i]}" for i in unused)
    outdone = [i for i in unused if donation.has_equal_size(in_avals[i], out_avals)]
    small = [leaves[i] for i in unused if i not in outdone]
    reasons = [f"  No result of {function} has as many bytes as {', '.join(small)}."] if small else []
    if outdone:
        late = ", ".join([leaves[i] for i in outdone])
        reasons.append(f"  The results of {function} with as many bytes as {late} take other donated memory.")
    advice = "  They are not reused, and stay. Donate arguments that a result can take the place of."
    source.warn("\n".join([f"Some donated buffers were not usable: {named}.", *reasons, advice]))


def _platform(given: Sequence[str] | None) -> str:
    """Return our name of a platform. Raises: ValueError for several, or one that there is not."""
    if given is None:
        return devices.current_device().platform
    if len(given) == 1 and given[0] in _PLATFORMS:
        return _PLATFORMS[given[0]]
    raise ValueError(f"lower: lowering_platforms must be one of {', '.join(_PLATFORMS)}, not {tuple(given)!r}.")


_PLATFORMS = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu", "tpu": "tpu"}
_LOCATION = re.compile(r" loc\(#loc\d+\)$|\n#loc\d+ = .*$", re.MULTILINE)


class Lowered(_Stage):
    """A program as a StableHLO module for a platform. `.as_text()`, `.compile()`.

    function: the jitted one, which is kept for what errors say of it.
    """

    function: object = None

    def __init__(self, traced: Traced, platform: str) -> None:
        super().__init__(traced.type, traced.donated)
        self._traced, self._platform = traced, platform

    def __repr__(self) -> str:
        return f"<Lowered {self.type}>"

    def as_text(self, dialect: str = "stablehlo", *, debug_info: bool = False) -> str:
        """Print the module.

        Args:
          dialect: "stablehlo", or "hlo" for XLA's own text.
          debug_info: whether StableHLO says of each operation where it comes from: its line and scopes.
        Raises: ValueError for another dialect; NotImplementedError for an operation that the platform lacks.
        """
        _check_dialect("as_text", dialect)
        if dialect == "hlo":
            return self.compiler_ir("hlo").as_hlo_text()
        text = self._module()
        return text if debug_info else _LOCATION.sub("", text)

    def compiler_ir(self, dialect: str = "stablehlo") -> Any:
        """Return the module as an object of jaxlib's: of MLIR, or, for "hlo", an `XlaComputation`.

        Raises: as `as_text`.
        """
        _check_dialect("compiler_ir", dialect)
        return compat.hlo(self._module()) if dialect == "hlo" else parse(self._module())

    def _module(self) -> str:
        program = self._traced.to_compile
        donated = tuple(len(program.consts) + i for i in self._traced.donated)
        return emit.module(program.jaxpr, donated, program.jaxpr.name, self._platform).text

    def cost_analysis(self) -> Any:
        """Return XLA's counts for the module before it is compiled: flops, bytes accessed, transcendentals."""
        return compat.module_cost(dispatch.device_of(()).client, self.as_text())

    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> "Compiled":
        """Compile the module for the default device. Raises: ValueError if it is for another platform."""
        traced, device = self._traced, dispatch.device_of(())
        if device.platform != self._platform:
            raise ValueError(f"compile: the module is for {self._platform}, and the default device is {device}.")
        options = {**traced.options, **(compiler_options or {})}
        again = Traced(
            traced.jaxpr,
            traced.in_tree,
            traced.out_tree,
            traced.donated,
            options,
            self.type.function,
            self.type.names,
            traced.references,
        )
        again.budget = traced.budget
        return Compiled(CompiledCall.compiled(again, device), self.function)


def _check_dialect(who: str, dialect: str) -> None:
    if dialect not in ("stablehlo", "hlo"):
        raise ValueError(f"{who}: the dialect must be 'stablehlo' or 'hlo', not {dialect!r}.")


class Compiled(_Stage):
    """A compiled function: callable with arguments of exactly the types it was compiled for.

    function: the jitted one, as `Lowered` keeps it.
    """

    def __init__(self, program: CompiledCall, function: object = None) -> None:
        self.function: Final = function
        super().__init__(program.signature, [i - len(program.consts) for i in program.donated])
        self._program, self._executable = program, program.executable

    def __repr__(self) -> str:
        return f"<Compiled {self.type} for {self._executable.device}>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = pytree.flatten((args, kwargs))
        self.type.check(leaves, tree)
        try:
            return self._program.call(leaves)
        except ArgumentError as error:
            raise error.by_name(self.type.named_argument) from None

    def cost_analysis(self) -> Any:
        """Return XLA's counts: flops, bytes accessed, transcendentals."""
        return self._executable.cost_analysis()

    def memory_analysis(self) -> MemoryAnalysis:
        """Return sizes in bytes: arguments, results, aliases, temporaries, total; the printed form says which hold."""
        return self._executable.memory_analysis()

    def runtime_executable(self) -> Any:
        """Return jaxlib's object of the compiled program."""
        return self._executable.loaded

    def as_text(self) -> str:
        """Print the optimised program, as XLA does."""
        return self._executable.as_text()

    def serialize(self) -> bytes:
        """Write the compiled function, with the arrays that it closes over, as bytes for `stages.load`.

        They are for this version of jaxlib and this kind of machine.

        Raises: TypeError if it calls functions on the host, reads or writes references, or if a structure of its
          arguments or results holds a class or a value that cannot be named in such a file: a Partial, for instance, or
          an object as auxiliary data.
        """
        program = self._program
        if program.references is not None:
            raise TypeError(f"serialize: {self.type.name} reads or writes references, which no file holds.")
        return serialization.write_compiled(program.signature, program.saveable(), program.consts, program.donated)


def load(data: bytes, device: Any = None) -> Compiled:
    """Read a compiled function that `Compiled.serialize` wrote.

    Calling the function runs machine code that is in the bytes: load none that you would not run. Nothing is unpickled,
    and no module imported: classes of named tuples and of registered nodes must have been when this is called.

    Args:
      data: what `serialize` returned, in this version of jaxlib and on this kind of machine.
      device: one of `tl.devices()`, of the kind that it was compiled for; by default the one that is used now.
    Raises: ValueError if it is something else, or damaged, or of another jaxlib, device or processor; TypeError if
      these are no bytes, or a class of its arguments or results is not here.

    >>> from tapeless import jit
    >>> double = jit(lambda x: 2 * x).lower(1.0).compile()
    >>> load(double.serialize())(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    devices.of_placement("stages.load", device)
    found = serialization.read_compiled(data, device or dispatch.device_of(()))
    return Compiled(CompiledCall(found.signature, found.executable, found.consts, found.donated, None))


class ShapeDtypeStruct:
    """The shape and dtype of an array, without elements.

    Args:
      dtype: of arrays, as NumPy names it; a Python type is taken in the default width.
      sharding: None, or that of an array on the device that is used now.
      weak_type: whether it gives way to other dtypes, as Python numbers do.
    Raises: TypeError if there is no such dtype, or the shape is no sequence; NotImplementedError for another sharding.
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(
        self, shape: Sequence[int], dtype: Any, *, sharding: devices.Sharding | None = None, weak_type: bool = False
    ) -> None:
        here = None if sharding is None else devices.SingleDeviceSharding(devices.current_device())
        if sharding != here:
            raise NotImplementedError(
                f"ShapeDtypeStruct: sharding={sharding!r} is not where programs are compiled for now, {here!r}.\n"
                "  Use it within tl.default_device(device)."
            )
        self.shape: Final = tuple(shape)
        self.dtype: Final = dtypes.canonical(dtype)
        self.weak_type: Final = weak_type
        self.sharding: Final = sharding

    @classmethod
    def of(cls, aval: ShapedArray) -> "ShapeDtypeStruct":
        """Make the ShapeDtypeStruct of an aval."""
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type)

    @classmethod
    def like(cls, x: Any) -> "ShapeDtypeStruct":
        """Make the ShapeDtypeStruct of an array, a number or another ShapeDtypeStruct, whose sharding it has."""
        x = x if isinstance(x, cls) else cls.of(aval_of(x))
        return cls(x.shape, x.dtype, sharding=x.sharding, weak_type=x.weak_type)

    def update(self, **changed: Any) -> "ShapeDtypeStruct":
        """Make one with other shape, dtype, sharding or weak_type. Raises: TypeError for another name."""
        return ShapeDtypeStruct(**{name: getattr(self, name) for name in self.__slots__} | changed)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ShapeDtypeStruct without axes.")
        return self.shape[0]

    def __bool__(self) -> bool:
        return True  # it has a length, which may be 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        mine, theirs = ((x.shape, x.dtype, x.weak_type, x.sharding) for x in (self, other))
        return mine == theirs

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type, self.sharding))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{weak})"
