"""The names that Equinox wants of JAX when it is imported, and that Tapeless does not have, filled in; then a script.

`python -m tests.ecosystem.equinox_names script.py` runs a script as `python -m tapeless.as_jax script.py` does. What is
filled in here is what keeps Equinox (0.13) from being imported; none of it is used by its core, or it would raise.
"""

import contextlib
import runpy
import sys
from types import ModuleType
from typing import Any, NoReturn

import tapeless as tl
from tapeless.tracer import jaxpr


class Primitive:
    """`jax.extend.core.Primitive`: primitives are defined and given rules, and cannot be applied."""

    def __init__(self, name: str) -> None:
        self.name, self.multiple_results = name, False

    def def_impl(self, rule: Any) -> None: ...

    def def_abstract_eval(self, rule: Any) -> None: ...

    def bind(self, *args: Any, **params: Any) -> NoReturn:
        raise NotImplementedError(self.name)


class Zero:
    """`jax.interpreters.ad.Zero`, of which no rule that runs here is given any."""


class NamedScope(contextlib.ContextDecorator):
    """`jax.named_scope`, without names."""

    def __init__(self, name: str) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


# Modules that are missing, with what is asked of them; then names that are missing in modules that are there.
MODULES: dict[str, dict[str, Any]] = {
    "jax.extend": {},
    "jax.extend.core": {
        "Primitive": Primitive,
        "ClosedJaxpr": jaxpr.ClosedJaxpr,
        "Jaxpr": jaxpr.Jaxpr,
        "Literal": jaxpr.Literal,
        "Var": jaxpr.Var,
        "mapped_aval": None,
        "unmapped_aval": None,
    },
    "jax.interpreters": {},
    "jax.interpreters.ad": {"Zero": Zero, "primitive_jvps": {}, "primitive_transposes": {}},
    "jax.interpreters.batching": {"primitive_batchers": {}, "axis_primitive_batchers": {}},
    "jax.interpreters.mlir": {"lower_fun": lambda f, multiple_results: f, "register_lowering": lambda p, rule: None},
    "jax._src": {},
    "jax._src.dispatch": {},
    "jax._src.dtypes": {"TypePromotionError": TypeError},
    "jax._src.traceback_util": {"register_exclusion": lambda file: None},
}
NAMES: dict[str, dict[str, Any]] = {
    "jax": {"named_scope": NamedScope, "pmap": lambda f: f},
    "jax.custom_derivatives": {"custom_jvp_call_p": Primitive("custom_jvp_call")},
    "jax.lax": {"stop_gradient_p": Primitive("stop_gradient")},
}


def fill_in() -> None:
    """Put the modules and names where `import` finds them."""
    for name, members in MODULES.items():
        module = ModuleType(name)
        module.__path__ = []  # a package, as far as `import` cares
        vars(module).update(members)
        sys.modules[name] = module
        package, _, last = name.rpartition(".")
        vars(sys.modules[package])[last] = module
    for name, members in NAMES.items():
        vars(sys.modules[name]).update(members)


if __name__ == "__main__":
    with tl.as_jax() as jax:
        for namespace in NAMES:
            __import__(namespace)
        fill_in()
        runpy.run_path(sys.argv[1], run_name="__main__")
