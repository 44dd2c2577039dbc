"""`as_jax`: inside it, `import jax` means Tapeless, so that a script or a library for JAX can be tried unedited.

Modules by JAX's names are found before any others, and have the members of our namespaces of these names; what we lack
is an AttributeError or an ImportError that says so. What was imported with JAX is put aside meanwhile, and what is
imported with us is put aside after it: one process has room for both, one with-block for one of them.
"""

import importlib
import importlib.abc
import importlib.machinery
import sys
import traceback
from collections.abc import Callable, Container, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any, Final

from tapeless.compile.jit import Jitted, jit
from tapeless.compile.make_jaxpr import eval_shape, make_jaxpr
from tapeless.like_jax import x64_requests
from tapeless.like_jax.jax_src import absent, core, distributed, export, meshes, placement, version
from tapeless.lowering import host
from tapeless.lowering.xla_workarounds import compat
from tapeless.tracer import dtypes
from tapeless.tracer.array import Array
from tapeless.tracer.core import Tracer
from tapeless.tracer.jaxpr import ClosedJaxpr, OpenJaxpr
from tapeless.tracer.numpy.scalar_types import result_type
from tapeless.tracer.settings import settings_by_text
from tapeless.tracer.settings.config import NAMES_OF_JAX, config

_OWN = "tapeless"
# What JAX has elsewhere, or we have of its private modules.
_ELSEWHERE = {
    "jax.api_util": "tapeless.extend.api_util",
    "jax.example_libraries": "tapeless.like_jax.jax_src.example_libraries",
    "jax.experimental.hijax": "tapeless.extend.hijax",
    "jax.experimental.layout": "tapeless.like_jax.jax_src.placement",
    "jax.lib": "tapeless.like_jax.jax_src.lib",
    "jax.interpreters": "tapeless.extend.interpreters",
    "jax.monitoring": "tapeless.like_jax.jax_src.monitoring",
    "jax.test_util": "tapeless.testing",
    "jax.version": "tapeless.like_jax.jax_src.version",
    "jax.export": "tapeless.like_jax.jax_src.export",
    "jax.experimental.sparse": "tapeless.like_jax.jax_src.sparse",
    "jax._src.checkify": "tapeless.experimental.checkify",
    "jax._src.lax.control_flow": "tapeless.lax",
    "jax._src.lax.lax": "tapeless.lax",
    "jax._src.lax": "tapeless.lax",
    "jax._src.interpreters": "tapeless.extend.interpreters",
    "jax._src.lib.xla_client": "tapeless.like_jax.jax_src.xla_client",
    "jax._src.numpy.lax_numpy": "tapeless.numpy",
    "jax._src.numpy.ufuncs": "tapeless.numpy",
    "jax._src.numpy.util": "tapeless.like_jax.jax_src.numpy_util",
    "jax._src.scipy": "tapeless.scipy",
    "jax._src.stages": "tapeless.stages",
    "jax._src": "tapeless.like_jax.jax_src",
}


@contextmanager
def as_jax() -> Generator[ModuleType]:
    """Make `import jax` import Tapeless within a with block; the block is given the module that replaces jax.

    NumPy's arrays of 64 bits are taken as of 32, unless `jax_enable_x64` is set, and so are dtypes of 64 bits that a
    program asks for, with a UserWarning at its line, as in JAX. Environment variables such as JAX_ENABLE_X64 and
    JAX_PLATFORMS are obeyed; rules of custom_vjp need not be linear (`config.check_linear_rules`). The settings before
    are back outside. An exception that a callback raises inside of a compiled program is a JaxRuntimeError.
    Libraries are imported anew inside, also if they were imported with the real JAX before; outside, the other way
    round. Modules belong to the whole process: no other thread should import any meanwhile, and functions of the real
    JAX, which imports parts of itself while it runs, should not be called inside.

    Raises: when a name is used or imported that Tapeless does not have, AttributeError or ImportError naming it.

    >>> with as_jax():
    ...     import jax.numpy as jnp
    ...     print(jnp.arange(3) + 1)
    [1 2 3]
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        yield importlib.import_module("jax")
        return
    finder, before = _Finder(), {name: getattr(config, name) for name in (*_SET, *NAMES_OF_JAX)}
    finder.install()
    names = _rename_classes()
    host.raised_as.append(_runtime_error)
    compat.around_imports_of_jax.append(finder.suspended)
    try:
        for name, value in settings_by_text.in_environment(NAMES_OF_JAX, config.__getattr__).items():
            config.update(name, value)
        config.numpy_bits = config.default_bits  # JAX has one width for both
        config.check_linear_rules = False
        with x64_requests.truncate_requests():
            yield importlib.import_module("jax")
    finally:
        for name, value in before.items():
            if value != getattr(config, name):
                config.update(name, value)
        compat.around_imports_of_jax.remove(finder.suspended)
        host.raised_as.remove(_runtime_error)
        finder.remove()
        for kind, (module, name) in names.items():
            kind.__module__, kind.__qualname__ = module, name


_SET = ("default_bits", "numpy_bits", "check_linear_rules")


def _rename_classes() -> dict[type, tuple[str, str]]:
    """Let classes of arrays say that they are of JAX's modules, by which libraries such as autoray tell arrays apart.

    Of jitted functions, too, which libraries such as chex tell from others by the name of the class.
    Returns: the modules and names that they had.
    """
    names = {kind: (kind.__module__, kind.__qualname__) for kind in (*_derived(Array), *_derived(Tracer), Jitted)}
    for kind in names:
        kind.__module__ = "jax" if kind is Array else "jax._src.core" if issubclass(kind, Tracer) else "jaxlib._jax"
    Jitted.__qualname__ = "PjitFunction"
    return names


def _derived(kind: type) -> Iterator[type]:
    """List a class and those derived from it."""
    yield kind
    for other in kind.__subclasses__():
        yield from _derived(other)


def _runtime_error(error: BaseException) -> BaseException:
    """Return the error that jaxlib makes of a callback's exception; libraries search its text for the type."""
    if not isinstance(error, Exception):
        return error
    text = "".join(traceback.format_exception(error))
    made = compat.xc.XlaRuntimeError(f"INTERNAL: CpuCallback error calling callback: {text}")
    made.__cause__ = error
    return made


# ---- modules that stand for JAX's ----------------------------------------------------------------------------


# Members of `jax.numpy` that the array API standard names, which are not in `__all__`.
_OF_ARRAY_API = "__array_api_version__", "__array_namespace_info__"


class Namespace(ModuleType):
    """A module by a name of JAX's, with the members of our namespace of that name."""

    def __init__(self, name: str, users: set[str]) -> None:
        ours = _ours(name)
        super().__init__(name, ours.__doc__)
        self._ours, self._users = ours, users
        self.__all__ = list(ours.__all__)
        self._members = frozenset([*self.__all__, *(_OF_ARRAY_API if name == "jax.numpy" else ())])
        if name == "jax":
            self.__version__: Final = version.__version__
            self.__version_info__: Final = version.__version_info__
            self.config: Final = _JaxConfig()
            self.enable_x64: Final = _enable_x64

    def __getattr__(self, name: str) -> Any:
        whole = f"{self.__name__}.{name}"
        if whole in _INSTEAD:
            return _INSTEAD[whole]
        if whole in _ELSEWHERE:
            return importlib.import_module(whole)
        if name not in self._members and whole in absent.NAMES:
            found = self.__dict__[name] = absent.absent(whole)
            return found
        if whole in absent.REPLACED:
            raise NotImplementedError(absent.lacking(whole))
        if name not in self._members:
            raise AttributeError(absent.lacking(whole), name=name, obj=self)
        asking = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # the documented cheap way to a frame
        self._users.add(asking.f_globals.get("__name__", ""))
        found = getattr(self._ours, name)
        if isinstance(found, ModuleType):
            return importlib.import_module(f"{self.__name__}.{name}")
        return x64_requests.asking(self._ours.__name__, name, found)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.__all__]

    def __reduce__(self) -> Any:
        """Pickle it by its name, as cloudpickle pickles modules that functions use."""
        return importlib.import_module, (self.__name__,)


class _JaxConfig:
    """`jax.config`: our settings by JAX's names; `jax_enable_x64` sets the width of NumPy's arrays, too."""

    def update(self, name: str, value: Any) -> None:
        """Set a field for the process. Raises: AttributeError if there is no such field."""
        config.update(name, value)
        if name == "jax_enable_x64":
            config.numpy_bits = config.default_bits

    def __getattr__(self, name: str) -> Any:
        return getattr(config, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)


@contextmanager
def _enable_x64(new_val: bool = True) -> Generator[None]:
    """Make 64 bits (32 if `new_val` is false) the default within a with block."""
    bits = 64 if new_val else 32
    with config.scope(default_bits=bits, numpy_bits=bits):
        yield


def _canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """Return the dtype that is meant, by None the default one, of 32 bits unless `jax_enable_x64` is set.

    Raises: TypeError if there is none, or it is that of keys and extended dtypes are not allowed.
    """
    found = dtypes.canonical(float if dtype is None else dtype)
    if dtypes.is_key(found) and not allow_extended_dtype:
        raise TypeError(f"canonicalize_dtype: {found} is an extended dtype, which is not allowed here.")
    return dtypes.numpy_dtype(found)


def _result_type(*args: Any) -> Any:
    """Return the dtype that arrays, numbers and dtypes have in common, of 32 bits unless `jax_enable_x64` is set."""
    return dtypes.numpy_dtype(result_type(*args))


def _make_jaxpr(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Make a function that traces `fun`, as `tapeless.make_jaxpr`; its programs keep constants apart from inputs."""
    made = make_jaxpr(fun, *args, **kwargs)

    def opened(*args: Any, **kwargs: Any) -> Any:
        found = made(*args, **kwargs)
        return (_open(found[0]), *found[1:]) if isinstance(found, tuple) else _open(found)

    return wraps(made)(opened)


def _eval_shape(fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Compute the shapes and dtypes of a result, as `tapeless.eval_shape`; sizes may be symbols of `jax.export`."""
    return export.shapes_for_symbols(eval_shape, fun, args, kwargs)


def _open(program: ClosedJaxpr) -> ClosedJaxpr:
    return ClosedJaxpr(OpenJaxpr(program.jaxpr, len(program.consts)), program.consts)


_INSTEAD = {
    "jax.eval_shape": _eval_shape,
    "jax.make_array_from_single_device_arrays": placement.make_array_from_single_device_arrays,
    "jax.make_jaxpr": _make_jaxpr,
    "jax.core.concrete_or_error": core.concrete_or_error,
    "jax.core.is_concrete": core.is_concrete,
    "jax.dtypes.canonicalize_dtype": _canonicalize_dtype,
    "jax.dtypes.result_type": _result_type,
    "jax.experimental.multihost_utils.reached_preemption_sync_point": distributed.reached_preemption_sync_point,
    "jax.experimental.pjit.pjit": jit,
    "jax.numpy.result_type": _result_type,
    "jax._src.dtypes.canonicalize_dtype": _canonicalize_dtype,
    "jax._src.dtypes.result_type": _result_type,
    **{f"jax.sharding.{name}": getattr(meshes, name) for name in meshes.__all__},
}


def _ours(name: str) -> ModuleType:
    """Return our namespace for a module of JAX's. Raises: ImportError if there is none."""
    start = next((there for there in _ELSEWHERE if _is_of(there, name)), "jax")
    found: Any = importlib.import_module(_ELSEWHERE.get(start, _OWN))
    for part in name.removeprefix(start).split(".")[1:]:
        if part not in found.__all__ or not isinstance(found := getattr(found, part), ModuleType):
            return _of_absent_names(name)
    return found


def _of_absent_names(name: str) -> ModuleType:
    """Make a module of only names that raise when they are used. Raises: ImportError if there is none."""
    if not any(_is_of(name, other) for other in (*absent.NAMES, *absent.REPLACED, *_ELSEWHERE, *_INSTEAD)):
        raise ImportError(absent.lacking(name), name=name)
    module = ModuleType(name, "Names that are not there: see `tapeless.like_jax.jax_src.absent`.")
    vars(module)["__all__"] = []
    return module


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import hook: finds the modules that stand for JAX's, and keeps JAX's own aside with packages using them."""

    def __init__(self) -> None:
        self._aside: dict[str, ModuleType] = {}
        self._present: set[str] = set()
        self.users: set[str] = set()  # names of modules that used a member of ours

    def install(self) -> None:
        """Install the hook before any other finder."""
        self._aside = _taken({"jax"} | _packages_with(_is_real))
        self._present = set(sys.modules)
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Uninstall the hook, drop packages imported meanwhile that use our modules, and put JAX's own back."""
        sys.meta_path.remove(self)
        _taken({"jax"} | _packages_with(_is_shim) | {name.partition(".")[0] for name in self.users}, self._present)
        sys.modules.update(self._aside)

    @contextmanager
    def suspended(self) -> Generator[None]:
        """Let `import jax` mean JAX: for jaxlib, which is never to see other classes than JAX's."""
        sys.meta_path.remove(self)
        ours = _taken({"jax"})
        sys.modules.update({name: module for name, module in self._aside.items() if _is_of("jax", name)})
        try:
            yield
        finally:
            self._aside.update(_taken({"jax"}))
            sys.modules.update(ours)
            sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not _is_of("jax", fullname):
            return None
        _ours(fullname)
        return importlib.machinery.ModuleSpec(fullname, self, origin=_OWN, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Namespace:
        return Namespace(spec.name, self.users)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: members are looked up when they are used."""


# ---- what was imported with one, while the other is asked for ------------------------------------------------


def _packages_with(is_one: Callable[[Any], bool]) -> set[str]:
    """Find the imported packages with a module that is one of these, or has one among its attributes."""
    return {name.partition(".")[0] for name, module in list(sys.modules.items()) if any(map(is_one, _held(module)))}


def _taken(packages: set[str], but: Container[str] = ()) -> dict[str, ModuleType]:
    """Take packages out of the imported modules, but for some modules."""
    names = [name for name in sys.modules if name.partition(".")[0] in packages - _STAYING and name not in but]
    return {name: sys.modules.pop(name) for name in names}


# Extension modules cannot be loaded twice, and those of jaxlib have classes of JAX among their attributes.
_STAYING = {"__main__", "__mp_main__", "builtins", "importlib", "jaxlib", "sys", _OWN}


def _held(module: Any) -> Iterator[Any]:
    """List a module, and the modules, classes and functions among its attributes."""
    yield module
    values = list(getattr(module, "__dict__", {}).values())
    yield from [x for x in values if isinstance(x, (ModuleType, type, FunctionType))]


def _is_shim(x: Any) -> bool:
    return isinstance(x, Namespace)


def _is_real(x: Any) -> bool:
    """Tell whether a module, or an object's module, is part of the real JAX."""
    name = x.__name__ if isinstance(x, ModuleType) else getattr(x, "__module__", None)
    return isinstance(name, str) and _is_of("jax", name) and not _is_shim(x)


def _is_of(package: str, name: str) -> bool:
    return name == package or name.startswith(f"{package}.")
