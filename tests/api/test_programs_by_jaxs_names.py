"""Programs taken apart and applied as JAX's tutorials do it: by the attributes that JAX's jaxprs have."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.core import ShapedArray
from tapeless.extend import core, mlir
from tapeless.tracer.jaxpr import ClosedJaxpr, DebugInfo, OpenJaxpr
from tests.messages import place, raises


def evaluated(jaxpr: Any, consts: Sequence[Any], *args: Any) -> list[Any]:
    """`eval_jaxpr` of "Writing custom Jaxpr interpreters in JAX", as it is written there."""
    env: dict[Any, Any] = {}

    def read(var: Any) -> Any:
        return var.val if type(var) is core.Literal else env[var]

    def write(vars: Any, values: Any) -> None:
        env.update(zip(vars, values, strict=True))

    write(jaxpr.invars, args)
    write(jaxpr.constvars, consts)
    for eqn in jaxpr.eqns:
        subfuns, params = eqn.primitive.get_bind_params(eqn.params)
        outs = eqn.primitive.bind(*subfuns, *map(read, eqn.invars), **params)
        write(eqn.outvars, outs if eqn.primitive.multiple_results else [outs])
    return list(map(read, jaxpr.outvars))


def branching(x: Any) -> Any:
    y, ys = lax.scan(lambda c, e: (tnp.sin(c) + e, c), 0.5, x)
    return lax.cond(y > 0, tnp.sin, lambda y: -y, y) + ys.sum()


twice_p = core.Primitive("twice")
twice_p.def_effectful_abstract_eval(lambda x: (ShapedArray(x.shape, x.dtype), set()))
twice_p.def_impl(lambda x: 2 * x)
mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))


@pytest.mark.parametrize(
    "f",
    [branching, tl.jit(branching), lambda x: tl.grad(branching)(x).sum(), lambda x: twice_p.bind(x) + tl.nn.relu(x)],
)
def test_the_interpreter_of_the_tutorial(f: Callable[..., Any]) -> None:
    x = tnp.arange(3.0)
    program = tl.make_jaxpr(f)(x)
    np.testing.assert_allclose(evaluated(program.jaxpr, program.literals, x)[0], f(x), rtol=1e-6)


def test_functions_with_rules_are_called_without_them() -> None:
    """As libraries that simplify programs do it: the function is among what `bind` is given."""
    pushed, pulled = [rules(lambda x, y: (tnp.sin(x) * y, y)) for rules in (tl.custom_jvp, tl.custom_vjp)]
    pushed.defjvp(lambda primals, tangents: (pushed(*primals), tangents))
    pulled.defvjp(lambda x, y: (pulled(x, y), None), lambda _, cts: cts)
    for f in (pushed, pulled):
        eqn = tl.make_jaxpr(f)(1.0, 2.0).eqns[0]
        functions, params = eqn.primitive.get_bind_params(eqn.params)
        (function,) = params["subfuns"]
        for outs in (function.call_wrapped(1.0, 2.0), eqn.primitive.bind(*functions, 1.0, 2.0, **params)):
            np.testing.assert_allclose(outs, f(1.0, 2.0))


def test_the_inverse_of_the_tutorial() -> None:
    """Primitives of equations are found in tables by their names in `lax`."""
    inverses = {lax.exp_p: tnp.log, lax.tanh_p: tnp.arctanh}
    program = tl.make_jaxpr(lambda x: tnp.exp(tnp.tanh(x)))(0.5)
    value = tnp.exp(tnp.tanh(0.5))
    for eqn in program.eqns[::-1]:
        value = inverses[eqn.primitive](value)
    np.testing.assert_allclose(value, 0.5, rtol=1e-6)


def scaled(x: Any) -> Any:
    return x * np.arange(3, dtype=np.float32)


def test_a_closed_program_knows_which_inputs_are_constants() -> None:
    program = tl.make_jaxpr(scaled)(tnp.ones(3))
    jaxpr = program.jaxpr
    assert (jaxpr.constvars, program.constvars, program.invars) == ((), jaxpr.invars[:1], jaxpr.invars[1:])
    assert (program.outvars, program.literals) == (jaxpr.outvars, program.consts)
    assert program.debug_info == jaxpr.debug_info == DebugInfo(None, "scaled")
    assert (program.pretty_print(use_color=True), jaxpr.pretty_print(print_shapes=True)) == (str(program), str(jaxpr))
    (line,) = [line for line in program.pretty_print(source_info=True).split("\n") if " = mul " in line]
    assert line.endswith(f"  # {place(scaled, 'return').partition(',')[0]}")
    assert "#" not in str(program) and jaxpr.pretty_print(source_info=True).count("#") == len(jaxpr.eqns)
    assert program.effects == jaxpr.effects == program.eqns[0].effects == frozenset()
    assert program.eqns[0].source_info.file_line() == program.eqns[0].source.file_line()
    other = program.replace(consts=[tnp.ones(3)])
    assert tl.core.eval_jaxpr(other.jaxpr, other.consts, tnp.ones(3))[0].tolist() == [1, 1, 1]
    assert program.replace(jaxpr=jaxpr.replace(name="g")).debug_info.func_src_info == "g"


def test_an_open_program_keeps_constants_apart() -> None:
    x = np.ones(3, np.float32)
    whole = tl.make_jaxpr(lambda x: tl.jit(scaled)(x) + scaled(x))(x)
    jaxpr = OpenJaxpr(whole.jaxpr, len(whole.consts))
    program = ClosedJaxpr(jaxpr, whole.consts)
    assert (jaxpr.constvars, jaxpr.invars) == (program.constvars, program.invars) == (whole.constvars, whole.invars)
    assert jaxpr.in_avals == program.in_avals == whole.in_avals
    assert str(jaxpr) == str(program) == str(whole)
    for found in (evaluated(jaxpr, program.consts, x), tl.core.eval_jaxpr(jaxpr, program.consts, x)):
        assert found[0].tolist() == core.jaxpr_as_fun(program)(x)[0].tolist() == [0, 2, 4]
    other = jaxpr.replace(eqns=jaxpr.eqns[:-1], outvars=jaxpr.eqns[-2].outvars)
    assert tl.core.eval_jaxpr(other, program.consts, x)[0].tolist() == [0, 1, 2]
    inner = jaxpr.eqns[0].params["jaxpr"]
    assert (inner.jaxpr, inner.consts) == (inner, ())


def test_fields_that_a_program_has_not_cannot_be_replaced() -> None:
    jaxpr = tl.make_jaxpr(scaled)(tnp.ones(3)).jaxpr
    for made in (jaxpr, jaxpr.eqns[0]):
        with pytest.raises(TypeError, match="unexpected keyword argument 'effects'"):
            made.replace(effects=set())


def test_effects_of_a_program_are_those_of_the_programs_inside() -> None:
    program = tl.make_jaxpr(tl.jit(lambda x: tl.debug.print("{}", x)))(1.0)
    assert program.effects == program.eqns[0].effects == frozenset(["debug"])


# ---- primitives


def test_primitives_compute_values_and_types() -> None:
    aval = ShapedArray((), "float32")
    of_equation = tl.make_jaxpr(tnp.sin)(1.0).eqns[0].primitive
    assert of_equation.multiple_results and not lax.sin_p.multiple_results
    assert of_equation.abstract_eval(aval) == ((aval,), frozenset())
    assert lax.sin_p.abstract_eval(aval) == (aval, frozenset())
    assert of_equation.impl(0.5)[0] == lax.sin_p.impl(0.5) == tnp.sin(0.5)
    assert lax.top_k_p.impl(tnp.arange(3.0), k=1)[1].tolist() == [2]
    assert twice_p.impl(3) == 6 and twice_p.abstract_eval(aval) == (aval, frozenset())
    assert aval.update(weak_type=True).strip_weak_type() is aval


def test_values_are_computed_even_while_tracing() -> None:
    program = tl.make_jaxpr(lambda x: x + lax.sin_p.impl(0.0))(1.0)
    assert [eqn.primitive.name for eqn in program.eqns] == ["add"]


def test_a_primitive_of_ones_own_has_no_effects() -> None:
    p = core.Primitive("p")
    p.def_effectful_abstract_eval(lambda x: (ShapedArray(x.shape, x.dtype), {"written"}))
    with raises(
        NotImplementedError,
        "p: its abstract_eval rule names effects, {'written'}, which programs do not keep.\n"
        "  Call the host by io_callback, which has an effect.",
    ):
        tl.make_jaxpr(p.bind)(1.0)
