"""`as_jax`: what `import jax` means inside of it and outside, what is missing by name, and scripts as main programs."""

import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tapeless.jax_src import version

LACKING = "Tapeless stands for JAX here, and does not have it; see 'Coverage' in its documentation."


def run(*arguments: str, code: str = "") -> Any:
    """A Python process; `code` is what it runs, if it is not an argument."""
    given = ("-c", textwrap.dedent(code)) if code else ()
    done = subprocess.run([sys.executable, "-W", "error", *given, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_inside():
    """Names are ours, by every way of importing them; what we lack is an error that names it."""
    run(
        code=f"""
        import pickle, sys
        import numpy as np
        sys.modules["jax"] = None  # there is none, as far as `import` knows
        import tapeless as tl, tapeless.numpy as tnp
        from types import FunctionType, ModuleType

        def message(kind, code):
            try:
                exec(code, {{}})
            except kind as error:
                return str(error)

        with tl.as_jax() as given:
            import jax, jax.numpy as jnp, jax.scipy.stats.norm as norm
            from jax import lax, random, tree_util
            from jax.numpy import linalg
            assert jax is given is sys.modules["jax"] and type(jnp) is not ModuleType
            assert (jax.jit, jnp.sin, lax.scan, random.key) == (tl.jit, tnp.sin, tl.lax.scan, tl.random.key)
            assert norm.logpdf is tl.scipy.stats.norm.logpdf and linalg.inv is tnp.linalg.inv is jnp.linalg.inv
            assert jax.__version__ == "0.10.2" and jax.__version_info__ == (0, 10, 2)
            assert pickle.loads(pickle.dumps(jnp)) is jnp
            assert jnp is jax.numpy is sys.modules["jax.numpy"] and "grad" in dir(jax) and "sin" in jnp.__all__
            assert not hasattr(jax, "nothing") and not hasattr(jax, "lowering")
            assert str(type(jax.jit(jnp.sin))) == "<class 'jaxlib._jax.PjitFunction'>"
            assert jax.lib.__version__.count(".") == 2 and "nothing" not in jax._src.xla_bridge._backends
            assert jax.interpreters.ad.Zero is tl.extend.interpreters.ad.Zero and not hasattr(jax.interpreters, "vmap")
            assert message(AttributeError, "import jax; jax.numpy.nothing") == "jax.numpy.nothing: {LACKING}"
            assert message(ImportError, "from jax import nothing") == "jax.nothing: {LACKING}"
            assert message(ImportError, "import jax.tracer") == "jax.tracer: {LACKING}"
            assert message(ImportError, "import jax._src.array") == "jax._src.array: {LACKING}"
            assert jax.version.__version__ == jax.__version__ and isinstance(jax.api_util.safe_map, FunctionType)
            program, shape = jax.make_jaxpr(lambda x: x + np.ones(3), return_shape=True)(1.0)
            assert (len(program.jaxpr.invars), len(program.jaxpr.constvars), shape.shape) == (1, 1, (3,))
            from jax.test_util import check_grads
            assert check_grads is tl.testing.check_grads
            with tl.as_jax() as again:
                assert again is jax
            import jax as still
            assert still is jax
            assert jax.config.jax_enable_x64 is jax.config.jax_debug_nans is False and tl.config.numpy_bits == 32
            x = np.linspace(0, 1, 3)
            assert jnp.asarray(x).dtype == jax.jit(jnp.sin)(x).dtype == np.float32
            with jax.enable_x64():
                assert jnp.asarray(x).dtype == jnp.ones(2).dtype == np.float64
            for name, value in {{"jax_debug_nans": True, "jax_num_cpu_devices": len(jax.devices("cpu"))}}.items():
                setattr(jax.config, name, value)
                assert getattr(tl.config, name) == value == getattr(jax.config, name)
            jax.config.jax_debug_nans = False
            assert message(AttributeError, "import jax; jax.config.nothing = 1").startswith("config has no field")
            assert message(ValueError, "import jax; jax.config.jax_debug_nans = 3").startswith("config.debug_nans must")
            jax.config.jax_enable_x64 = True
            assert jax.config.jax_enable_x64 is True and jnp.asarray(x).dtype == jnp.ones(2).dtype == np.float64
        assert tl.config.default_bits == 32 and tl.config.numpy_bits == 64
        assert type(tl.jit(tnp.sin)).__qualname__ == "Jitted" and tl.Array.__module__ != "jax"
        assert sys.modules["jax"] is None and "jax.numpy" not in sys.modules
        """
    )


def test_beside_the_real_one():
    """Each library is bound to the one that it was imported with, and there is no trace of us outside."""
    pytest.importorskip("jax")
    run(
        code="""
        import pathlib, sys, tempfile
        folder = tempfile.mkdtemp()
        pathlib.Path(folder, "user.py").write_text("import jax.numpy as jnp\\ndef f(): return jnp.ones(2)")
        pathlib.Path(folder, "other.py").write_text("from jax import jit")
        sys.path.insert(0, folder)
        import jax, user, tapeless as tl
        before, meta_path = dict(sys.modules), list(sys.meta_path)
        theirs = user
        for _ in range(2):
            try:
                with tl.as_jax() as shim:
                    import user as ours, other
                    assert ours is not theirs and isinstance(ours.f(), tl.Array) and other.jit is tl.jit
                    raise KeyError
            except KeyError:
                pass
            assert sys.meta_path == meta_path and "other" not in sys.modules
            assert {name: m for name, m in sys.modules.items() if name in before} == before
            import jax.numpy as jnp, user
            assert user is theirs and sys.modules["jax"] is jax and not isinstance(user.f(), tl.Array)
            assert jax.grad(lambda x: x**2)(3.0) == 6
        import other
        assert other.jit is jax.jit
        """
    )


def test_jaxlib_is_not_loaded_twice():
    """Its extension modules cannot be: LAPACK's would end the process."""
    pytest.importorskip("jax")
    run(
        code="""
        import jax.numpy as theirs
        theirs.linalg.eigh(theirs.eye(2))
        import tapeless as tl
        with tl.as_jax():
            import jax.numpy as jnp
            assert jnp.linalg.eigh(jnp.eye(2)).eigenvalues.shape == (2,)
        assert theirs.linalg.cholesky(theirs.eye(2)).shape == (2, 2)
        """
    )


@pytest.mark.parametrize("before", ["", "import jax"])
def test_jaxlib_is_shown_no_classes_of_ours(before: str):
    """What it looks for in jax.core it keeps: after us, JAX finds its own."""
    pytest.importorskip("jax")
    run(
        code=f"""
        import numpy as np
        {before}
        import tapeless as tl, tapeless.numpy as tnp
        x = np.arange(64, dtype=np.float32)
        with tl.as_jax():
            import jax.core
            assert np.array_equal(tl.from_dlpack(x), x) and np.asarray(tnp.ones(2, "bfloat16")).sum() == 2
            import jax
            assert jax.core.ShapedArray is tl.core.ShapedArray
        import jax, jax.numpy as jnp
        assert jnp.from_dlpack(x).sum() == x.sum() and (jnp.ones(2, jnp.bfloat16) + 1).sum() == 4
        assert jax.core.ShapedArray is not tl.core.ShapedArray
        """
    )


def test_names_that_libraries_only_import():
    """They are classes without objects, and say what they are not when they are used."""
    run(
        code=f"""
        import tapeless as tl
        with tl.as_jax():
            import jax
            from jax.experimental.layout import Layout
            from jax.sharding import Mesh, Sharding
            assert not isinstance(jax.numpy.ones(2).sharding, Mesh) and isinstance(jax.numpy.ones(2).sharding, Sharding)
            assert Mesh is jax.sharding.Mesh and Mesh | None and not hasattr(tl.sharding, "Mesh")
            try:
                Layout(None)
            except NotImplementedError as error:
                assert str(error) == "jax.experimental.layout.Layout: {LACKING}"
            try:
                Mesh.empty
            except AttributeError as error:
                assert str(error) == "jax.sharding.Mesh.empty: {LACKING}"
            assert not hasattr(jax.experimental, "layouts")
            from jax.example_libraries import stax
            assert stax.Relu[1]((), -1.0) == 0.0
            import numpy as np
            f64 = np.dtype("float64")
            for f in (jax.dtypes.canonicalize_dtype, jax.numpy.result_type, jax.dtypes.result_type):
                assert f(f64) == f("float64") == f(float) == np.float32 and f("int8") == np.int8
                with jax.enable_x64():
                    assert f(f64) == np.float64
            try:
                jax.dtypes.canonicalize_dtype(jax.random.key(0).dtype)
            except TypeError as error:
                assert "extended dtype" in str(error)
            from jax.experimental import hijax
            class Effect(jax.extend.core.Effect): ...
            hijax.control_flow_allowed_effects.add_type(Effect)
            assert hijax.control_flow_allowed_effects.contains(Effect()) and Effect() == Effect() != hijax
            class Type(hijax.MutableHiType):
                method = hijax.aval_method(len)
                prop = hijax.aval_property(fget=len)
            class Immutable(hijax.HiType): ...
            class New(hijax.VJPHiPrimitive): ...
            hijax.register_hitype(Type, type)
            for name, apply in (("new", hijax.HiPrimitive("new").bind), ("New", New())):
                try:
                    apply(1.0)
                except NotImplementedError as error:
                    assert str(error) == (
                        f"{{name}}: values are arrays, or pytrees of arrays. Types of a library's own "
                        "(jax.experimental.hijax) are not supported."
                    )
        """
    )


def test_requests_for_64_bits():
    """They give 32 bits, and one warning at the line that asks, unless 64 are enabled; ours, and outside, give 64."""
    run(
        code="""
        import pickle, warnings
        import numpy as np
        import tapeless as tl, tapeless.numpy as tnp
        from tapeless.tracer.array import Array
        methods = dict(vars(Array))
        with tl.as_jax():
            import jax, jax.numpy as jnp
            from jax import lax, random
            key, x = random.key(0), jnp.arange(4.0).reshape(2, 2)
            init = jax.nn.initializers
            cases = [
                (lambda d: jnp.zeros(3, d), "ifcu"),
                (lambda d: jnp.full(3, 1, dtype=d), "ifcu"),
                (lambda d: jnp.array([1], d), "ifcu"),
                (lambda d: jnp.asarray(np.ones(3, d), d), "ifcu"),
                (lambda d: jnp.frombuffer(bytes(16), d), "ifu"),
                (lambda d: jnp.eye(3, dtype=jnp.dtype(d)), "ifcu"),
                (lambda d: getattr(jnp, d)(3), "ifcu"),
                (lambda d: x.astype(d), "ifcu"),
                (lambda d: x.view(getattr(np, d)), "iu"),
                (lambda d: x.sum(dtype=d), "fc"),
                (lambda d: lax.convert_element_type(x, d), "ifcu"),
                (lambda d: jax.jit(lambda x: x.astype(dtype=d))(x), "fi"),
                (lambda d: jax.vmap(lambda x: x.astype(d))(x), "fi"),
                (lambda d: lax.iota(d, 3), "ifu"),
                (lambda d: lax.argmax(x, 0, index_dtype=d), "iu"),
                (lambda d: lax.dot(x, x, preferred_element_type=d), "f"),
                (lambda d: jnp.matmul(x, x, preferred_element_type=d), "f"),
                (lambda d: random.randint(key, (2,), 0, 5, d), "iu"),
                (lambda d: random.normal(key, (2,), d), "f"),
                (lambda d: init.normal(1.0)(key, (2,), d), "f"),
                (lambda d: init.zeros(key, (2,), d), "f"),
                *[(lambda d, f=f: f(x, dtype=d), "fc") for f in (jnp.sum, jnp.mean, jnp.cumsum, jnp.ones_like)],
            ]
            wide = dict(i=("int64", "int32"), u=("uint64", "uint32"), f=("float64", "float32"))
            wide["c"] = "complex128", "complex64"
            for case, kinds in cases:
                for asked, given in map(wide.get, kinds):
                    with warnings.catch_warnings(record=True) as caught:
                        warnings.simplefilter("always")
                        found = case(asked)
                        with jax.enable_x64():
                            assert asked != wide[kinds[0]][0] or case(asked).dtype == asked
                    assert found.dtype == given, (found.dtype, asked, case)
                    (warning,) = caught
                    assert warning.category is UserWarning and warning.filename == "<string>", warning
                    assert str(warning.message).startswith(f"Explicitly requested dtype {asked} in ")
                    assert f" is truncated to {given}" in str(warning.message)
            assert case(float).dtype == case("float32").dtype == x.astype(jnp.float_).dtype == "float32"
            big = np.array([2**40, 1])
            for f, x in ((jnp.array, big), (jnp.frombuffer, big.tobytes()), (jnp.astype, big)):
                with warnings.catch_warnings(action="ignore"):
                    try:
                        raise SystemExit(str(f(x, "int64")))
                    except OverflowError as error:
                        assert "int32, which 1099511627776 does not fit" in str(error), error
                        assert "jax_enable_x64" in str(error)
            assert jnp.finfo("float64").dtype == "float64" and jnp.isdtype(np.dtype("int64"), jnp.int64)
            assert jnp.zeros is jnp.zeros is pickle.loads(pickle.dumps(jnp.zeros)) and jnp.zeros.__name__ == "zeros"
            assert tl.scipy.special.hyp1f1(1.0, 2.0, 3.0).dtype == "float32"  # computed in float64, without a word
            kept = tnp.zeros(2, "float64")
        assert kept.dtype == kept.astype("float64").dtype == tnp.float64(3).dtype == "float64"
        assert {**methods} == {**vars(Array)}
        with tl.config.scope(numpy_bits=32):
            assert tnp.zeros(2, "float64").dtype == tnp.ones(2).astype("float64").dtype == "float64"
        """
    )


def test_settings_by_text():
    """Environment variables and flags, by JAX's names; what is before a with block is back after it."""
    pytest.importorskip("absl")
    run(
        code="""
        import os, sys
        import tapeless as tl
        from tapeless.tracer.config import NAMES_OF_JAX
        tl.config.debug_infs = True
        os.environ.update(JAX_ENABLE_X64="1", JAX_DEBUG_INFS="off", JAX_DEFAULT_MATMUL_PRECISION="highest")
        sys.argv[1:] = ["x", "--jax_disable_jit", "--nojax_enable_x64", "--other=3", "--", "--jax_debug_nans"]
        with tl.as_jax():
            import jax
            assert jax.config.jax_enable_x64 and not jax.config.jax_debug_infs
            assert jax.config.jax_default_matmul_precision == "highest"
            jax.config.parse_flags_with_absl()
            assert jax.config.jax_disable_jit and not jax.config.jax_enable_x64 and not jax.config.jax_debug_nans
        assert (tl.config.default_bits, tl.config.numpy_bits) == (32, 64) and not tl.config.disable_jit
        assert tl.config.debug_infs and tl.config.default_matmul_precision is None
        from absl import app, flags
        flags.DEFINE_integer("other", 0, "a flag of the program's own")
        tl.config.config_with_absl()
        found = lambda argv: (argv[1:], flags.FLAGS.other, tl.config.jax_numpy_rank_promotion, tl.config.debug_nans)
        sys.argv[1:] = ["--jax_numpy_rank_promotion=warn", "--other=3", "y"]
        try:
            app.run(lambda argv: found(argv) == (["y"], 3, "warn", False))
        except SystemExit as done:
            assert done.code is True
        for name in NAMES_OF_JAX:
            getattr(tl.config, name)
        os.environ["JAX_DEBUG_NANS"] = "maybe"
        try:
            tl.as_jax().__enter__()
        except ValueError as error:
            assert str(error) == "the environment variable JAX_DEBUG_NANS must be true or false, not 'maybe'."
        """
    )


def test_doors_for_libraries():
    run(
        code=f"""
        import numpy as np, tapeless as tl
        with tl.as_jax():
            import jax, jax.numpy as jnp
            from jax._src import compiler, dtypes
            assert [dtypes.to_complex_dtype(d) for d in ("int32", "float64", "bfloat16")] == ["F", "D", "F"]
            assert [dtypes.to_inexact_dtype(d) for d in ("int32", "float16", "D")] == ["f", "e", "D"]
            from jax._src.public_test_util import check_close
            class Variable:
                def __array__(self, dtype=None, copy=None):
                    return np.array([1.0, 2.0], np.float32)
            handlers = jax.interpreters.xla.canonicalize_dtype_handlers
            handlers[Variable] = handlers[np.ndarray]
            jax.core.pytype_aval_mappings[Variable] = jax.core.pytype_aval_mappings[np.ndarray]
            assert (jnp.sin(Variable()) == jnp.sin(jnp.array([1.0, 2.0]))).all() and jnp.sum(Variable()) == 3
            assert Variable in handlers and len(handlers) == len(list(handlers)) == 3
            del handlers[Variable]
            assert not hasattr(Variable, "__jax_array__")
            check_close(dict(a=jnp.ones(2)), dict(a=np.ones(2) + 1e-7))
            check_close(jnp.ones(2), np.ones(2) + 1e-3, atol=dict(float32=1e-2, float64=1e-2))
            for bad in (dict(a=jnp.ones(2) + 1e-3), dict(b=jnp.ones(2)), dict(a=np.array([1, 2]))):
                try:
                    check_close(dict(a=jnp.ones(2)), bad)
                except AssertionError:
                    continue
                raise SystemExit(bad)
            try:
                hasattr(compiler, "backend_compile_and_load")
            except NotImplementedError as error:
                assert str(error) == "jax._src.compiler.backend_compile_and_load: {LACKING}"
            assert not hasattr(compiler, "other")
            assert jax.sharding.get_abstract_mesh().empty and jax.sharding.get_mesh().shape == dict()
            assert jax.sharding.AxisType.Auto in list(jax.sharding.AxisType)
            from jax._src import checkify
            def checked(key, x):
                checkify.check(x > 0, "{{key}} and {{x}}", key=key, x=x)
                return x
            error, _ = jax.jit(checkify.checkify(checked))(jax.random.key(0), -1.0)
            assert str(error.get()).startswith("Array((), dtype=key<fry>) overlaying:") and " and -1.0 (" in error.get()
            @jax.custom_vjp
            def clipped(x):
                return x
            clipped.defvjp(lambda x: (x, None), lambda _, ct: (jnp.sign(ct),))
            assert jax.grad(lambda x: 5 * clipped(x))(1.0) == 1
            class Refused(Exception): ...
            def refuse(x):
                raise Refused("no")
            f = jax.jit(lambda x: jax.pure_callback(refuse, x, x))
            try:
                f(jnp.ones(2))
            except jax.errors.JaxRuntimeError as error:
                assert "Refused: no" in str(error) and isinstance(error.__cause__, Refused)
        assert tl.config.check_linear_rules
        try:
            f(jnp.ones(2))
        except Refused as error:
            assert str(error) == "no"
        """
    )


def test_scripts_and_modules(tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text("import sys, jax\nassert __name__ == '__main__'\nprint(sys.argv[1:], jax.jit.__module__)")
    expected = "['a', '-b'] tapeless.compile.jit\n"
    assert run("-m", "tapeless.as_jax", str(script), "a", "-b") == expected
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import tapeless as tl, tapeless.as_jax as cli; "
    assert (
        run(code=f"{code}cli.main(['-m', 'script', 'a', '-b']); assert tl.as_jax is cli; tl.as_jax().__enter__()")
        == expected
    )
    for wrong in ([], ["-m"], ["--help"]):
        done = subprocess.run([sys.executable, "-m", "tapeless.as_jax", *wrong], capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.startswith(
            "usage: python -m tapeless.as_jax [-m module | script.py]"
        )


def test_the_version_is_that_of_the_oldest_jaxlib():
    """Names and meanings are of one JAX, whichever jaxlib is installed."""
    needed = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    assert f"jaxlib>={version.__version__},<" in " ".join(needed)


def test_names_that_libraries_import():
    """Private modules lead to public functions of the same name; what cannot be done raises only when it is used."""
    run(
        code="""
        import numpy as np, pytest, tapeless as tl
        with tl.as_jax():
            import jax
            from jax._src.distributed import global_state
            from jax._src.interpreters.batching import is_vmappable
            import jax._src.lax.control_flow, jax._src.lax.lax
            from jax._src.lib import xla_client
            from jax._src.numpy.lax_numpy import ufunc
            from jax._src.numpy.util import promote_dtypes, promote_dtypes_complex, promote_dtypes_inexact
            from jax._src.scipy.special import gammaln
            from jax.experimental import colocated_python, pallas as pl
            from jax.experimental.pjit import pjit
            from jax.experimental.sparse import BCSR, JAXSparse
            from jax.extend import ifrt_programs
            from jax.extend.backend import get_backend
            from jax.experimental.layout import Format
            assert Format(None, jax.numpy.ones(2).sharding) == jax.numpy.ones(2).sharding
            from jax.experimental import multihost_utils
            assert not multihost_utils.reached_preemption_sync_point(1)
            assert jax.make_array_from_single_device_arrays.__name__ == "make_array_from_single_device_arrays"
            assert pjit is tl.jit and isinstance(ifrt_programs.ifrt_programs, type)
            assert get_backend().platform == jax.devices()[0].platform and global_state.client is None
            assert jax._src.stages.Lowered is tl.stages.Lowered and ufunc is tl.numpy.ufunc
            assert gammaln is tl.scipy.special.gammaln and xla_client.XlaRuntimeError is tl.errors.JaxRuntimeError
            ones = np.ones(2, np.int32), np.ones(2, np.float16)
            both = [[str(x.dtype) for x in f(*ones)] for f in (promote_dtypes, promote_dtypes_complex)]
            assert both == [["float16"] * 2, ["complex64"] * 2]
            assert [str(x.dtype) for x in promote_dtypes_inexact(ones[0])] == ["float32"]
            assert jax.numpy.__array_namespace_info__ is tl.numpy.__array_namespace_info__
            assert jax._src.lax.control_flow.scan is jax._src.lax.lax.scan is tl.lax.scan
            assert not isinstance(ones, JAXSparse) and not is_vmappable(ones)
            with pytest.raises(NotImplementedError, match="jax.experimental.pallas.BlockSpec: Tapeless stands"):
                pl.BlockSpec((1,))
            heard = []
            jax.monitoring.register_scalar_listener(lambda *args, **kwargs: heard.append((args, kwargs)))
            jax.monitoring.record_scalar("/loss", 2.0, step=3)
            jax.monitoring.clear_event_listeners()
            jax.monitoring.record_scalar("/loss", 1.0)
            assert heard == [(("/loss", 2.0), dict(step=3))]
            x, module = jax.numpy.ones(2), lambda x: type(x).__module__.partition(".")[0]
            known, traced = [], []
            jax.grad(lambda x: known.append(jax.core.is_concrete(x)) or x)(1.0)
            jax.make_jaxpr(lambda x: traced.append((module(x), jax.core.is_concrete(x))) or x)(x)
            assert known == [jax.core.is_concrete(x)] == [True] and traced == [("jax", False)]
            assert jax.core.concrete_or_error(int, x[0]) == 1 and module(x) == "jaxlib"
            assert jax.Array.__module__ == "jax"
            n, three = jax.export.symbolic_shape("(n, 3)")
            assert jax.export.is_symbolic_dim(n) and not jax.export.is_symbolic_dim(three) and repr(n) == "n"
            assert jax.export.symbolic_shape("n", constraints=["n >= 2"]) == (n,)
            like = jax.ShapeDtypeStruct((n, three), "float32")
            whole, part = jax.eval_shape(lambda x: (x.T @ x, [x[::2, :1], x]), like)
            sizes = part[0].shape
            assert whole.shape == (3, 3) and part[1].shape == (n, 3) and sizes[1] == 1
            assert jax.export.is_symbolic_dim(sizes[0]) and sizes[0] is not n
            many = jax.export.symbolic_shape("a, b, c, d, e, f, g")
            assert [repr(dim) for dim in many] == list("abcdefg")
            assert len(set(sum([dim.samples for dim in (n, *many)], ()))) == 16
            told = []
            for spec, constraint in (("2*n", "n >= 2"), ("n", "m == n"), ("n", "n >= 84")):
                try:
                    jax.export.symbolic_shape(spec, constraints=[constraint])
                except NotImplementedError as error:
                    told.append(str(error))
            assert told == [
                "symbolic_shape: 2*n is an expression: give numbers and names only.",
                "symbolic_shape: 'm == n' is not of the form 'n >= 2', up to 83.",
                "symbolic_shape: 'n >= 84' is not of the form 'n >= 2', up to 83.",
            ]
            try:
                jax.eval_shape(lambda x: x if len(x) < 86 else x[0], like)
            except ValueError as error:
                assert "a result has 2 axes or 1, depending on a symbolic size." in str(error)
            assert jax.experimental.sparse.sparsify(module) is module
        assert module(x) == tl.Array.__module__.partition(".")[0] == "tapeless"
        """
    )
