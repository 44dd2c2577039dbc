"""What a user can import is what `__all__` says, no more and no less, and all of it says what it is."""

import ast
import importlib
import inspect
import re
import types
from types import ModuleType
from typing import Any

import pytest

import tapeless
import tapeless.numpy as tnp
from tests.messages import raises

NAMESPACES = [
    "tapeless",
    *(
        f"tapeless.{name}"
        for name in """
        numpy numpy.fft numpy.linalg lax lax.linalg random stages tree tree_util testing debug dtypes experimental nn
        nn.initializers image scipy scipy.cluster scipy.cluster.vq scipy.fft scipy.integrate
        scipy.interpolate scipy.linalg scipy.ndimage scipy.optimize scipy.signal scipy.sparse scipy.sparse.linalg
        scipy.spatial scipy.spatial.transform scipy.special scipy.stats core typing flatten_util ops sharding errors
        ad_checkpoint
        custom_batching custom_derivatives extend extend.core extend.interpreters extend.ad extend.batching extend.mlir
        extend.partial_eval extend.xla extend.api_util extend.hijax extend.linear_util extend.primitives
        extend.source_info_util ad dlpack optimizers profiler ref like_jax.jax_src
        like_jax.jax_src.ad_util like_jax.jax_src.core like_jax.jax_src.dispatch like_jax.jax_src.dtypes
        like_jax.jax_src.state like_jax.jax_src.flatten_util like_jax.jax_src.traceback_util
        experimental.checkify experimental.jet experimental.ode
        """.split()
    ),
]
PROMISED = """
jit grad value_and_grad vjp jvp linearize linear_transpose make_jaxpr eval_shape custom_jvp stop_gradient device_put
vmap jacfwd jacrev hessian device_get block_until_ready devices default_device
tree tree_util lax numpy random testing config enable_x64 Array
pure_callback io_callback effects_barrier debug dtypes experimental
""".split()
PROMISED_RANDOM = """
key PRNGKey split fold_in bits uniform normal randint bernoulli permutation choice categorical truncated_normal gumbel
exponential
""".split()

# JAX's parameters that wait for shardings and named axes; every other one has JAX's name and JAX's place.
NOT_YET = {
    "grad": {"reduce_axes"},
    "value_and_grad": {"reduce_axes"},
    "vjp": {"reduce_axes"},
    "linear_transpose": {"reduce_axes"},
    "vmap": {"sum_match"},
    "device_put": {"src"},
}
SAME_SIGNATURE = """
jit grad value_and_grad vjp jvp linearize linear_transpose make_jaxpr eval_shape device_put device_get
block_until_ready custom_jvp custom_vjp closure_convert vmap jacfwd jacrev hessian pure_callback effects_barrier
""".split()

each_namespace = pytest.mark.parametrize("name", NAMESPACES)


def public(module: ModuleType) -> set[str]:
    """List names without underscore. A module with code of its own has imports for its use, which `dir` leaves out."""
    names = {n for n, value in vars(module).items() if not n.startswith("_") and not inspect.ismodule(value)}
    tree = ast.parse(inspect.getsource(module))
    has_code = any(isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name[0] != "_" for node in tree.body)
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))] if has_code else []
    return names - ({a.asname or a.name for node in imports for a in node.names} - {*module.__all__})


@each_namespace
def test_all_is_what_can_be_imported(name: str):
    module = importlib.import_module(name)
    listed = [n for n in module.__all__ if not inspect.ismodule(getattr(module, n))]
    assert len(module.__all__) == len(set(module.__all__))
    assert set(listed) == public(module)


@each_namespace
def test_dir_shows_public_names(name: str):
    module = importlib.import_module(name)
    assert [n for n in dir(module) if not n.startswith("_") and n not in module.__all__] == []
    assert [n for n in module.__all__ if n not in dir(module)] == []


@each_namespace
def test_everything_exported_has_a_docstring(name: str):
    module = importlib.import_module(name)
    values = {n: getattr(module, n) for n in module.__all__}
    documentable = {n: value for n, value in values.items() if inspect.isroutine(value) or inspect.isclass(value)}
    assert [n for n, value in documentable.items() if not inspect.getdoc(value)] == []


def test_promised_names():
    assert [name for name in PROMISED if name not in tapeless.__all__] == []
    assert [name for name in PROMISED_RANDOM if name not in tapeless.random.__all__] == []


@pytest.mark.parametrize(
    "name", [f"tapeless{name}" for name in ("", ".numpy", ".numpy.fft", ".numpy.linalg", ".lax", ".lax.linalg")]
)
def test_what_is_not_there(name: str):
    module = importlib.import_module(name)
    message = (
        f"module {name!r} has no attribute 'nothing'.\n"
        "  If JAX has it, it is not there yet: see the page 'Coverage' of the documentation."
    )
    with raises(AttributeError, message):
        _ = module.nothing
    assert not hasattr(module, "nothing")


def test_version_is_that_of_the_package():
    assert tapeless.__version__ == importlib.import_module("importlib.metadata").version("tapeless")


@pytest.mark.parametrize("name", SAME_SIGNATURE)
def test_parameters_have_the_names_and_places_of_jax(name: str):
    jax = pytest.importorskip("jax")
    theirs = inspect.signature(getattr(jax, name)).parameters.values()
    ours = inspect.signature(getattr(tapeless, name)).parameters
    expected = [p for p in theirs if p.name not in NOT_YET.get(name, ())]
    assert [p.name for p in expected if p.name not in ours] == []
    by_place = [p.name for p in expected if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    assert [n for n in ours if n in by_place] == by_place
    assert [n for n in NOT_YET.get(name, ()) if n in ours] == []  # then it is time to take it off the list


# Parameters of jax.lax that wait for shardings, or choose among implementations of which there is one here.
NOT_YET_IN_LAX = {"accuracy", "out_sharding", "sharding", "out_dtype", "use_consistent_padding"}
WITHOUT_NAMES_IN_JAX = {"random_gamma_grad"}  # jax.lax has *args there


def test_functions_of_lax_have_the_parameters_of_jax():
    lax = pytest.importorskip("jax").lax
    functions = [n for n in tapeless.lax.__all__ if inspect.isfunction(getattr(tapeless.lax, n)) and hasattr(lax, n)]
    checked = [n for n in functions if n not in WITHOUT_NAMES_IN_JAX]
    assert len(checked) > 130
    assert {n: fault for n in checked if (fault := _misplaced(getattr(tapeless.lax, n), getattr(lax, n)))} == {}


def _misplaced(ours: Any, theirs: Any) -> tuple[list[str], list[str]] | None:
    """Names by place, ours and JAX's, if a program that calls JAX's, by place or by name, would not call ours."""
    mine = inspect.signature(ours).parameters
    expected = [p for p in inspect.signature(theirs).parameters.values() if p.name not in NOT_YET_IN_LAX]
    by_place = [p.name for p in expected if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    same = list(mine)[: len(by_place)] == by_place and all(p.name in mine for p in expected)
    return None if same else (list(mine), [p.name for p in expected])


def test_who_raises_says_so():
    functions = [f for name in tnp.__all__ if isinstance(f := getattr(tnp, name), types.FunctionType)]
    raising = [f for f in functions if re.search(r"^ +raise ", inspect.getsource(f), re.MULTILINE)]
    assert len(raising) > 50
    assert [f.__name__ for f in raising if "Raise" not in f.__doc__] == []
