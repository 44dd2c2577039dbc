"""What libraries that transform programs find in `extend.core` and `extend.interpreters.partial_eval`."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.extend import core
from tapeless.extend.interpreters import partial_eval
from tapeless.tracer.jaxpr import ClosedJaxpr, OpenJaxpr
from tests.messages import raises


def test_types_of_one_example_and_of_many():
    aval = tl.core.ShapedArray((2, 3), np.dtype(np.float32))
    assert core.mapped_aval(3, 1, aval).shape == (2,) and core.mapped_aval(3, None, aval) is aval
    assert core.unmapped_aval(5, -1, aval).shape == (2, 3, 5)
    with raises(ValueError, "mapped_aval: axis 0 of float32[2,3] has 2 elements, not 4."):
        core.mapped_aval(4, 0, aval)
    assert core.primal_dtype_to_tangent_dtype(np.dtype("int8")) == tl.dtypes.float0


def test_programs():
    closed = tl.make_jaxpr(lambda x: [x + 1, tl.jit(tnp.sin)(x)])(1.0)
    assert core.jaxpr_as_fun(closed)(2.0) == [3.0, np.sin(np.float32(2))]
    (inner,) = core.subjaxprs(closed.jaxpr)
    assert [inner] == list(core.jaxprs_in_params(closed.eqns[1].params))
    assert core.check_jaxpr(closed.jaxpr) is closed.jaxpr and core.valid_jaxtype(1.0) and not core.valid_jaxtype("1")


def test_checking_a_program():
    """With its constants, by our convention and by JAX's; what is wrong with one is no fault of ours."""
    closed = tl.make_jaxpr(lambda x: tnp.sin(x) + np.ones(2, np.float32))(tnp.ones(2))
    opened = OpenJaxpr(closed.jaxpr, len(closed.consts))
    assert len(opened.constvars) == 1
    assert core.check_jaxpr(closed.jaxpr) is closed.jaxpr and core.check_jaxpr(opened) is opened
    for wrong in (closed.jaxpr.replace(eqns=closed.eqns[::-1]), opened.replace(eqns=opened.eqns[1:])):
        with pytest.raises(
            TypeError, match=r"^check_jaxpr: \w+.* is read before it is bound, in [^§]*lambda"
        ) as caught:
            core.check_jaxpr(wrong)
        assert "bug" not in str(caught.value)


def test_calls_in_programs():
    """An interpreter of a library finds calls by identity, reads their programs as in JAX, and binds what it traced."""
    scaled = tl.jit(lambda x: 2 * x + tnp.array([1.0, 2.0]))
    eqn = tl.make_jaxpr(lambda x: scaled(x) - 1)(tnp.ones(2)).eqns[0]
    program = eqn.params["jaxpr"]
    assert eqn.primitive is core.primitives.jit_p and program.jaxpr is program and program.consts == ()
    call = core.primitives.jit_p
    other = tl.make_jaxpr(lambda x: 3 * x + tnp.array([1.0, 2.0]))(tnp.ones(2))
    opened = ClosedJaxpr(OpenJaxpr(other.jaxpr, 1), other.consts)
    np.testing.assert_array_equal(call.bind(tnp.ones(2), jaxpr=opened)[0], [4, 5])
    np.testing.assert_array_equal(call.bind(tnp.ones(2), jaxpr=other)[0], [4, 5])
    np.testing.assert_array_equal(tl.grad(lambda x: call.bind(x, jaxpr=other)[0].sum())(tnp.ones(2)), [3, 3])


def test_dead_code():
    jaxpr = tl.make_jaxpr(lambda x, y, z: (x * y, tnp.cos(z) + y))(1.0, 2.0, 3.0).jaxpr
    program, used = partial_eval.dce_jaxpr(jaxpr, [False, True])
    assert used == [False, True, True] and [str(eqn.primitive) for eqn in program.eqns] == ["cos", "add"]
    assert [str(x) for x in tl.core.eval_jaxpr(program, [], 2.0, 0.0)] == ["3.0"]
    program, used = partial_eval.dce_jaxpr(jaxpr, [True, False], instantiate=[False, False, True])
    assert used == [True, True, True] and len(program.eqns) == 1
    assert len(partial_eval.dce_jaxpr(jaxpr, [True, False], True)[0].invars) == 3
    seen = []
    tl.jit(lambda x: seen.append(isinstance(x, partial_eval.DynamicJaxprTracer)))(1.0)
    assert seen == [True]


def test_traces_tell_their_tracers_apart():
    def f(x):
        trace = core.find_top_trace((x,))
        return x, isinstance(x, tl.core.Tracer) and x._trace.main is trace.main

    assert tl.jvp(lambda x: f(x)[1] * x, (1.0,), (1.0,))[1] == 1.0
    assert not f(1.0)[1]


def test_dtypes():
    names = "bool int4 uint8 int32 bfloat16 float64 complex64 float8_e4m3fn".split()
    bits = [8, 4, 8, 32, 16, 64, 64, 8]
    classes = [bool, int, int, int, float, float, complex, float]
    assert [tl.dtypes.itemsize_bits(name) for name in names] == bits
    assert [tl.dtypes.scalar_type_of(tnp.zeros(2, name)) for name in names] == classes
    assert (tl.dtypes.scalar_type_of(1j), tl.dtypes.scalar_type_of(True)) == (complex, bool)
    with pytest.raises(TypeError):
        tl.dtypes.scalar_type_of(tl.random.key(0))
    theirs = pytest.importorskip("jax.dtypes")
    assert [theirs.itemsize_bits(np.dtype(tnp.zeros(2, name).dtype)) for name in names] == bits
