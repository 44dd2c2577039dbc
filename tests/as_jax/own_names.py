"""Names are ours, however they are imported; what we lack is an error that names it. Imported inside of `as_jax`."""

import pickle
import sys
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.stats.norm as norm
import numpy as np
from jax import lax, random, tree_util
from jax.numpy import linalg
from jax.test_util import check_grads

import tapeless as tl
import tapeless.numpy as tnp
from tests.as_jax.facts import LACKING, Fact, refusal

OURS: dict[str, tuple[Any, Any]] = {
    "jax.jit": (jax.jit, tl.jit),
    "jax.numpy.sin": (jnp.sin, tnp.sin),
    "jax.lax.scan": (lax.scan, tl.lax.scan),
    "jax.random.key": (random.key, tl.random.key),
    "jax.tree_util.tree_map": (tree_util.tree_map, tl.tree_util.tree_map),
    "jax.scipy.stats.norm.logpdf": (norm.logpdf, tl.scipy.stats.norm.logpdf),
    "jax.numpy.linalg.inv": (linalg.inv, tnp.linalg.inv),
    "jax.numpy.linalg.inv by attributes": (jnp.linalg.inv, tnp.linalg.inv),
    "jax.interpreters.ad.Zero": (jax.interpreters.ad.Zero, tl.extend.interpreters.ad.Zero),
    "jax.test_util.check_grads": (check_grads, tl.testing.check_grads),
}
REFUSED = [
    (AttributeError, "import jax; jax.numpy.nothing", f"jax.numpy.nothing: {LACKING}"),
    (ImportError, "from jax import nothing", f"jax.nothing: {LACKING}"),
    (ImportError, "import jax.tracer", f"jax.tracer: {LACKING}"),
    (ImportError, "import jax._src.array", f"jax._src.array: {LACKING}"),
]


def facts() -> Iterator[Fact]:
    for name, (found, ours) in OURS.items():
        yield name, found, ours
    for kind, statement, text in REFUSED:
        yield statement, refusal(kind, statement), text
    yield from modules()
    yield from programs()
    yield from settings()


def modules() -> Iterator[Fact]:
    yield "jax in sys.modules", sys.modules["jax"] is jax, True
    yield "jax.numpy in sys.modules", sys.modules["jax.numpy"] is jnp is jax.numpy, True
    yield "jax.numpy is a class of modules of its own", type(jnp) is ModuleType, False
    yield "jax.numpy, pickled", pickle.loads(pickle.dumps(jnp)) is jnp, True
    yield "jax.__version__", jax.__version__, "0.10.2"
    yield "jax.__version_info__", jax.__version_info__, (0, 10, 2)
    yield "jax.version.__version__", jax.version.__version__, jax.__version__
    yield "jax.lib.__version__ has three parts or more", jax.lib.__version__.count(".") >= 2, True
    yield "dir(jax)", "grad" in dir(jax), True
    yield "jax.numpy.__all__", "sin" in jnp.__all__, True
    yield "jax.nothing", hasattr(jax, "nothing"), False
    yield "jax.lowering, which is not JAX's", hasattr(jax, "lowering"), False
    yield "jax.interpreters.vmap, which is not JAX's", hasattr(jax.interpreters, "vmap"), False
    yield "the class of jitted functions", str(type(jax.jit(jnp.sin))), "<class 'jaxlib._jax.PjitFunction'>"
    yield "no such backend", "nothing" in jax._src.xla_bridge._backends, False
    yield "jax.api_util.safe_map", isinstance(jax.api_util.safe_map, FunctionType), True
    with tl.as_jax() as again:
        yield "a block in a block", again is jax, True
    yield "jax behind the inner block", import_module("jax") is jax, True


def programs() -> Iterator[Fact]:
    program, shape = jax.make_jaxpr(lambda x: x + np.ones(3), return_shape=True)(1.0)
    yield "constants are apart from inputs", (len(program.jaxpr.invars), len(program.jaxpr.constvars)), (1, 1)
    yield "make_jaxpr(return_shape=True)", shape.shape, (3,)


def settings() -> Iterator[Fact]:
    config, x = jax.config, np.linspace(0, 1, 3)
    yield "jax_enable_x64", config.jax_enable_x64, False
    yield "jax_debug_nans", config.jax_debug_nans, False
    yield "numpy_bits", tl.config.numpy_bits, 32
    yield "asarray(float64)", jnp.asarray(x).dtype, np.float32
    yield "jit(sin)(float64)", jax.jit(jnp.sin)(x).dtype, np.float32
    with jax.enable_x64():
        yield "enable_x64(): asarray(float64)", jnp.asarray(x).dtype, np.float64
        yield "enable_x64(): ones(2)", jnp.ones(2).dtype, np.float64
    for name, value in {"jax_debug_nans": True, "jax_num_cpu_devices": len(jax.devices("cpu"))}.items():
        setattr(config, name, value)
        yield f"{name}, assigned", getattr(config, name), value
        yield f"{name} of tapeless", getattr(tl.config, name), value
    config.jax_debug_nans = False
    nothing = refusal(AttributeError, "import jax; jax.config.nothing = 1")
    yield "a setting that is not there", str(nothing).startswith("config has no field"), True
    three = refusal(ValueError, "import jax; jax.config.jax_debug_nans = 3")
    yield "a setting of a wrong type", str(three).startswith("config.debug_nans must"), True
    config.jax_enable_x64 = True
    yield "jax_enable_x64, assigned", config.jax_enable_x64, True
    yield "jax_enable_x64 = True: asarray(float64)", jnp.asarray(x).dtype, np.float64
    yield "jax_enable_x64 = True: ones(2)", jnp.ones(2).dtype, np.float64


def facts_afterwards() -> Iterator[Fact]:
    yield "default_bits afterwards", tl.config.default_bits, 32
    yield "numpy_bits afterwards", tl.config.numpy_bits, 64
    yield "the class of jitted functions afterwards", type(tl.jit(tnp.sin)).__qualname__, "Jitted"
    yield "tl.Array is not of jax afterwards", tl.Array.__module__ == "jax", False
    yield "jax in sys.modules afterwards", sys.modules["jax"], None
    yield "jax.numpy in sys.modules afterwards", "jax.numpy" in sys.modules, False
