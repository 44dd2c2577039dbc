"""Every public function under both default widths, eagerly and in `jit`: by the examples of the reference.

Programs are computed by the oracle where it can, in the place of executables, as compiling all would take minutes.
Dtypes are decided when a program is traced: that shows them.
"""

import ast
import contextlib
import doctest
import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering import dispatch
from tapeless.lowering.array import DeviceArray
from tapeless.lowering.xla_workarounds import compat
from tapeless.tracer import core, dtypes
from tapeless.tracer.jaxpr import Jaxpr, subjaxprs
from tapeless.tracer.settings.config import config
from tests.fuzzing import oracle
from tests.settings import restored_settings

NAMES = {"np": np, "tl": tl, "tnp": tnp, "lax": lax}
# Primitives for XLA: decompositions, whose signs are free, and a generator whose bits the oracle does not know.
_LEFT = set("eigh eig svd qr schur geqrf hessenberg tridiagonal cholesky tridiagonal_solve rng_bit_generator".split())
_TRACED_ONLY = {"hyp1f1"}  # runs hundreds of steps of loops, which take the oracle seconds
_EAGER_ONLY = {
    "typeof": "its result is no array",
    "from_dlpack": "what is traced has no memory to share",
    "load": "it loads the executable of a program",
    "live_arrays": "what other tests hold is among its results",
    **dict.fromkeys(("block_until_ready", "device_get", "copy_to_host_async"), "arrays of NumPy stay as they are"),
}


@dataclass(repr=False)
class _ByOracle:
    """In the place of an executable: the program, evaluated by NumPy."""

    jaxpr: Jaxpr
    device: Any
    restored: bool = False
    budget: Any = None

    @property
    def out_avals(self) -> Sequence[Any]:
        return self.jaxpr.out_avals

    def call(self, bufs: Sequence[Any]) -> list[DeviceArray]:
        found = oracle.evaluate(self.jaxpr, [*map(compat.to_numpy, bufs)])
        return [self._put(x, aval) for x, aval in zip(found, self.out_avals, strict=True)]

    def run(self, bufs: Sequence[Any]) -> list[Any]:
        return [x.buf for x in self.call(bufs)]

    def _put(self, x: Any, aval: Any) -> DeviceArray:
        host = np.asarray(x, aval.dtype)
        return DeviceArray(compat.put(host, aval, self.device.sharding, self.device.handle))


@contextlib.contextmanager
def computed_by_oracle() -> Iterator[None]:
    """Let the oracle compute what it can, of small arrays, within the block; no program of it is kept afterwards."""
    compiled, before = dispatch.executable, core._bottom.evaluator
    assert before is not None

    def executable(jaxpr: Jaxpr, device: Any, *args: Any, **options: Any) -> Any:
        return _ByOracle(jaxpr, device) if _is_known(jaxpr) else compiled(jaxpr, device, *args, **options)

    dispatch.executable = executable
    core.set_evaluator(dispatch.EagerEvaluator())
    try:
        yield
    finally:
        dispatch.executable = compiled
        core.set_evaluator(before)
        tl.clear_caches()


def _is_known(jaxpr: Jaxpr) -> bool:
    avals = [v.aval for v in (*jaxpr.invars, *(v for eqn in jaxpr.eqns for v in eqn.outvars))]
    return all(
        eqn.primitive.name in oracle.meanings.keys() - _LEFT and all(map(_is_known, _programs(eqn.params)))
        for eqn in jaxpr.eqns
    ) and all(isinstance(aval.dtype, np.dtype) and aval.dtype != dtypes.float0 for aval in avals)


def _programs(params: Any) -> list[Jaxpr]:
    return [getattr(x, "jaxpr", x) for x in subjaxprs(params)]


class Call(NamedTuple):
    """A call of an example: the function, and its arguments by place and name."""

    function: Any
    args: tuple[Any, ...]
    keywords: dict[str, Any]

    def run(self) -> Any:
        """The results."""
        return self.function(*self.args, **self.keywords)


def parsed(text: str) -> Call | None:
    """Evaluate the function and the arguments of a call; None for other text, such as an attribute of a call."""
    tree = ast.parse(text, mode="eval").body
    if not isinstance(tree, ast.Call) or any(isinstance(x, ast.Starred) for x in tree.args):
        return None

    def value(x: ast.expr) -> Any:
        return eval(compile(ast.Expression(x), text, "eval"), dict(NAMES))

    keywords = {k.arg: value(k.value) for k in tree.keywords if k.arg}
    return Call(value(tree.func), tuple(map(value, tree.args)), keywords)


class Widths(NamedTuple):
    """The default width; and of NumPy arrays of 64 bits, in whose place arrays are given if it is 32."""

    default_bits: int
    numpy_bits: int = 64


WIDTHS = (Widths(32), Widths(64), Widths(32, numpy_bits=32))


def problem(name: str, text: str, widths: Widths) -> str:
    """Run a call eagerly, and traced with its arrays as arguments; say what is wrong: it raises, or dtypes differ."""
    with _set(widths):
        try:
            call = parsed(text)
            if call is None:
                eval(text, dict(NAMES))
                return ""
            call = _of_numpy(call) if widths.numpy_bits == 32 else call
            last = name.rpartition(".")[2]
            eager = None if last in _TRACED_ONLY else _types(call.run())
            jitted = None if last in _EAGER_ONLY else _types_in_jit(call)
        except Exception as error:
            return f"{name}, {widths}: {text}\n  {type(error).__name__}: {error}"
    if None in (eager, jitted) or eager == jitted:
        return ""
    return f"{name}, {widths}: {text}\n  eagerly {eager}, jitted {jitted}"


@contextlib.contextmanager
def _set(widths: Widths) -> Iterator[None]:
    with restored_settings(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        config.default_bits, config.numpy_bits = widths
        config.check_programs = False  # other tests check them, at leisure
        yield


def _of_numpy(call: Call) -> Call:
    """Give NumPy arrays, of 64 bits where there are such, in the place of arrays."""
    wide = {"f": np.float64, "i": np.int64, "c": np.complex128}

    def converted(x: Any) -> Any:
        if not isinstance(x, tnp.ndarray) or not isinstance(x.dtype, np.dtype):
            return x
        return np.asarray(x, wide.get(x.dtype.kind, x.dtype))

    return call._replace(**dict(zip(("args", "keywords"), tl.tree.map(converted, (call.args, call.keywords)))))


def problem_of_docstring(name: str, text: str, names: dict[str, Any], widths: Widths) -> str:
    """Run the examples of a docstring, whatever they print; say which one raises, if it is not meant to."""
    with _set(widths):
        for example in doctest.DocTestParser().get_examples(text):
            try:
                exec(compile(example.source, name, "single"), names)
            except Exception as error:
                if example.exc_msg is None:
                    return f"{name}, {widths}: {example.source}  {type(error).__name__}: {error}"
    return ""


def _types_in_jit(call: Call) -> Any:
    """The types of results in `jit`; None where there are no arrays, or their values have to be known."""
    leaves, tree = tl.tree.flatten((call.args, call.keywords))
    places = [i for i, x in enumerate(leaves) if isinstance(x, (tnp.ndarray, np.ndarray))]
    if not places:
        return None

    def traced(*xs: Any) -> Any:
        given = list(leaves)
        for i, x in zip(places, xs):
            given[i] = x
        args, keywords = tl.tree.unflatten(tree, given)
        found = call.function(*args, **keywords)
        return None if _types(found) is None else found

    try:
        return _types(tl.eval_shape(traced, *[leaves[i] for i in places]))
    except tl.errors.ConcretizationTypeError:
        return None


def _types(found: Any) -> Any:
    """The types of a tree of arrays, with weakness; None for other objects."""
    leaves = tl.tree.leaves(found)
    if not all(hasattr(x, "dtype") and hasattr(x, "shape") for x in leaves):
        return None
    return [f"{x.dtype}{list(x.shape)}" for x in leaves] or None
