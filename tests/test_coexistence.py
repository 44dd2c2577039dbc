"""tapeless beside jax in one process, in either order, and without it. Every case has a process of its own."""

import importlib.util
import subprocess
import sys
import textwrap

import pytest

with_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="compares with jax, which is not installed"
)

OURS = """
def check_ours():
    import tapeless as tl, tapeless.numpy as tnp
    assert np.float64(tnp.asarray(np.array(0.1)) / 3) == 0.1 / 3
    x = np.array([1.0, 1e-17, 0.1])
    f = lambda x: tnp.sum(tnp.sin(x) * x)
    for g in (tl.grad(f), tl.jit(tl.grad(f))):
        y = g(x)
        assert y.dtype == np.float64 and isinstance(y, tl.Array), y
        np.testing.assert_allclose(np.asarray(y), np.cos(x) * x + np.sin(x), rtol=1e-15)
    assert tnp.arange(3).dtype == np.int32 and tnp.ones(2).dtype == np.float32
    assert tnp.asarray(np.array([2**40])).tolist() == [2**40]
"""
THEIRS = """
def check_theirs(bits):
    import jax, jax.numpy as jnp
    y = jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x) * x)))(np.array([1.0, 0.1]))
    assert type(y).__module__.startswith("jaxlib") and isinstance(y, jax.Array), type(y)
    assert str(y.dtype) == f"float{bits}", y.dtype
    assert str(jnp.ones(2).dtype) == f"float{bits}" and (y + jnp.ones(2)).sum() > 0
    assert jax.config.jax_enable_x64 == (bits == 64)
    assert jax.vmap(lambda x: x * 2)(y).shape == (2,) and repr(y).startswith("Array(")
"""


def run(body: str) -> None:
    code = "import sys\nimport numpy as np\n" + OURS + THEIRS + textwrap.dedent(body)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@with_jax
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["import tapeless, jax", "import jax, tapeless"])
def test_both_in_one_process(order, bits):
    run(f"""
        {order}
        jax.config.update("jax_enable_x64", {bits == 64})
        for _ in range(2):
            check_ours()
            check_theirs({bits})
    """)


@with_jax
@pytest.mark.parametrize("order", [("check_ours()", "check_theirs(32)"), ("check_theirs(32)", "check_ours()")])
def test_whoever_starts_the_runtime_first(order):
    run("\n".join([*order, *order[::-1]]))


@with_jax
def test_x64_switched_on_and_off_in_jax():
    run("""
        import jax, tapeless
        for bits in (32, 64, 32):
            jax.config.update("jax_enable_x64", bits == 64)
            check_ours()
            check_theirs(bits)
        with jax.enable_x64(True):
            check_ours()
        check_theirs(32)
    """)


@with_jax
def test_our_width_is_not_theirs():
    run("""
        import jax.numpy as jnp, tapeless as tl, tapeless.numpy as tnp
        tl.config.update("default_bits", 64)
        assert tnp.ones(2).dtype == np.float64 and jnp.ones(2).dtype == np.float32
        check_theirs(32)
    """)


@with_jax
def test_arrays_are_passed_both_ways():
    run("""
        import jax, jax.numpy as jnp, tapeless as tl, tapeless.numpy as tnp
        theirs = tnp.asarray(np.asarray(jnp.arange(3.0))) * 2
        assert isinstance(theirs, tl.Array) and theirs.tolist() == [0, 2, 4]
        ours = jnp.asarray(np.asarray(tnp.arange(3.0))) * 2
        assert isinstance(ours, jax.Array) and ours.tolist() == [0, 2, 4]
        assert np.from_dlpack(tl.from_dlpack(jnp.arange(3.0))).tolist() == [0, 1, 2]
        assert isinstance(tnp.asarray(jnp.arange(3.0)), tl.Array)
    """)


@with_jax
def test_arrays_of_the_other_are_refused():
    run("""
        import jax, jax.numpy as jnp, tapeless as tl, tapeless.numpy as tnp
        x, f = jnp.float32(3), lambda x: tnp.sin(x)
        for call, message in (
            (tnp.sin, "sin: argument 0 must be an array or a number, not ArrayImpl: Array(3., dtype=float32)."),
            (tl.grad(f), "grad: argument x of <lambda> is Array(3., dtype=float32) of type ArrayImpl, "
                "which is not an array."),
        ):
            try:
                call(x)
            except TypeError as error:
                help = "\\n  Write tnp.asarray(...) around an array of another library: it is copied to the device."
                assert str(error) == message + help, error
            else:
                raise AssertionError("not refused")
    """)


@with_jax
def test_jax_is_never_imported():
    run("""
        check_ours()
        import tapeless.testing, tapeless.random, tapeless.lax, tapeless.tree_util
        assert "jaxlib" in sys.modules
        found = [name for name in sys.modules if name == "jax" or name.startswith("jax.")]
        assert not found, found
    """)


BLOCK = """
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)
sys.meta_path.insert(0, Blocked())
"""


def test_works_without_jax():
    run('BLOCKED = {"jax"}' + BLOCK + "check_ours()\n")


def test_tracer_and_interpreters_import_without_the_runtime():
    run(
        'BLOCKED = {"jax", "jaxlib"}' + BLOCK + "import types, os, importlib.util\n"
        "package = types.ModuleType('tapeless')\n"
        "package.__path__ = importlib.util.find_spec('tapeless').submodule_search_locations\n"
        "sys.modules['tapeless'] = package\n"
        "import tapeless.tracer.numpy, tapeless.interpreters.linearize, tapeless.interpreters.rules\n"
        "from tapeless.tracer.staging import trace_to_jaxpr\n"
        "from tapeless.tracer.primitives.elementwise import sin\n"
        "from tapeless.tracer.types import ShapedArray\n"
        "jaxpr, _ = trace_to_jaxpr(lambda x: [sin(x)], [ShapedArray((3,), 'float32')])\n"
        "assert len(jaxpr.eqns) == 1\n"
    )
