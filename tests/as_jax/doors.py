"""Doors of libraries to what is private in JAX: handlers of types, checks, rules. Imported inside of `as_jax`."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import checkify, compiler, dtypes
from jax._src.public_test_util import check_close

import tapeless as tl
from tests.as_jax.facts import LACKING, Fact, refusal


class Variable:
    """A class of a library that stands for an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([1.0, 2.0], np.float32)


class Refused(Exception): ...


def refuse(x: Any) -> Any:
    raise Refused("no")


refusing = jax.jit(lambda x: jax.pure_callback(refuse, x, x))


def facts() -> Iterator[Fact]:
    complex_dtypes = [dtypes.to_complex_dtype(d) for d in ("int32", "float64", "bfloat16")]
    yield "dtypes.to_complex_dtype", complex_dtypes, [np.dtype(d) for d in "FDF"]
    inexact_dtypes = [dtypes.to_inexact_dtype(d) for d in ("int32", "float16", "D")]
    yield "dtypes.to_inexact_dtype", inexact_dtypes, [np.dtype(d) for d in "feD"]
    load = refusal(NotImplementedError, hasattr, compiler, "backend_compile_and_load")
    yield "compiler.backend_compile_and_load", load, f"jax._src.compiler.backend_compile_and_load: {LACKING}"
    yield "compiler.other", hasattr(compiler, "other"), False
    yield "get_abstract_mesh", jax.sharding.get_abstract_mesh().empty, True
    yield "get_mesh", jax.sharding.get_mesh().shape, {}
    yield "AxisType.Auto", jax.sharding.AxisType.Auto in list(jax.sharding.AxisType), True
    yield from handlers()
    yield from closeness()
    yield from checked_keys()
    yield "a rule that is not linear", float(jax.grad(lambda x: 5 * clipped(x))(1.0)), 1.0
    yield from callbacks()


def handlers() -> Iterator[Fact]:
    table = jax.interpreters.xla.canonicalize_dtype_handlers
    table[Variable] = table[np.ndarray]
    jax.core.pytype_aval_mappings[Variable] = jax.core.pytype_aval_mappings[np.ndarray]
    yield "sin of a variable", bool((jnp.sin(Variable()) == jnp.sin(jnp.array([1.0, 2.0]))).all()), True
    yield "sum of a variable", float(jnp.sum(Variable())), 3.0
    yield "a variable is in the table", Variable in table, True
    yield "length of the table", (len(table), len(list(table))), (3, 3)
    del table[Variable]
    yield "a variable that was deleted", hasattr(Variable, "__jax_array__"), False


def closeness() -> Iterator[Fact]:
    check_close({"a": jnp.ones(2)}, {"a": np.ones(2) + 1e-7})
    check_close(jnp.ones(2), np.ones(2) + 1e-3, atol={"float32": 1e-2, "float64": 1e-2})
    wrong = {"value": {"a": jnp.ones(2) + 1e-3}, "key": {"b": jnp.ones(2)}, "dtype": {"a": np.array([1, 2])}}
    for name, tree in wrong.items():
        text = refusal(AssertionError, check_close, {"a": jnp.ones(2)}, tree)
        yield f"check_close, another {name}", text is not None, True


def checked_keys() -> Iterator[Fact]:
    def checked(key: Any, x: Any) -> Any:
        checkify.check(x > 0, "{key} and {x}", key=key, x=x)
        return x

    error, _ = jax.jit(checkify.checkify(checked))(jax.random.key(0), -1.0)
    text = str(error.get())
    yield "checkify of a key", text.startswith("Array((), dtype=key<fry>) overlaying:"), True
    yield "checkify of a number beside it", " and -1.0 (" in text, True


@jax.custom_vjp
def clipped(x: Any) -> Any:
    return x


clipped.defvjp(lambda x: (x, None), lambda _, ct: (jnp.sign(ct),))


def callbacks() -> Iterator[Fact]:
    try:
        refusing(jnp.ones(2))
    except jax.errors.JaxRuntimeError as error:
        yield "the text of an exception of a callback", "Refused: no" in str(error), True
        yield "its cause", isinstance(error.__cause__, Refused), True
    else:
        yield "an exception of a callback", "nothing was raised", "JaxRuntimeError"


def facts_afterwards() -> Iterator[Fact]:
    yield "check_linear_rules afterwards", tl.config.check_linear_rules, True
    yield "an exception of a callback afterwards", refusal(Refused, refusing, tl.numpy.ones(2)), "no"
