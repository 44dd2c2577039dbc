"""What libraries find in `extend.linear_util` and `api_util`: functions wrapped in transformations, flat functions."""

from functools import partial
from inspect import signature

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.extend import api_util, core
from tapeless.extend import linear_util as lu
from tapeless.extend.interpreters import partial_eval as pe
from tapeless.like_jax.jax_src.api_util import infer_argnums_and_argnames
from tests.messages import raises


def test_transformations_are_called_outermost_first():
    @lu.transformation2
    def scaled(f, factor, *args, **kwargs):
        return factor * f(*args, **kwargs)

    @lu.transformation
    def shifted(by, *args, **kwargs):
        out = yield [x + by for x in args], kwargs
        yield out + by

    fun = lu.wrap_init(lambda x, y, power: x * y**power, {"power": 2})
    assert scaled(shifted(fun, 1), 10).call_wrapped(1, 2) == 10 * (2 * 3**2 + 1)
    assert shifted(scaled(fun, 10), 1).call_wrapped(1, 2) == 10 * 2 * 3**2 + 1
    assert scaled(fun, 10) == scaled(fun, 10) != scaled(fun, 9) and hash(scaled(fun, 10)) == hash(scaled(fun, 10))
    assert fun.__name__ == "<lambda>" and str(scaled(fun, 10)) == "WrappedFun(scaled of <lambda>)"


def test_auxiliary_output():
    @lu.transformation_with_aux
    def counted(*args):
        out = yield args, {}
        yield out, len(args)

    first, count = counted(lu.wrap_init(lambda *xs: max(xs)))
    second, other = counted(lu.wrap_init(lambda *xs: max(xs)))
    with raises(lu.StoreException, "Store empty"):
        count()
    with raises(lu.StoreException, "neither store occupied"):
        lu.merge_linear_aux(count, other)
    assert first.call_wrapped(1, 2, 3) == 3 and count() == 3
    assert lu.merge_linear_aux(count, other) == (True, 3) and lu.merge_linear_aux(other, count) == (False, 3)
    with raises(lu.StoreException, "Store occupied"):
        first.call_wrapped(1)
    assert second.call_wrapped(1, 1) == 1
    with raises(lu.StoreException, "both stores occupied"):
        lu.merge_linear_aux(count, other)


def test_flat_functions():
    def f(x, *, y):
        return {"sum": x[0] + y, "first": x[0]}

    leaves, tree = tl.tree.flatten((([1.0, 2.0],), {"y": 3.0}))
    info = api_util.debug_info("test", f, ([1.0, 2.0],), {"y": 3.0})
    assert info.traced_for == "test" and info.func_src_info.startswith("f at ")
    assert info.arg_names == ("x[0]", "x[1]", "y")
    assert api_util.debug_info("test", f, ([1.0, 2.0], 2), {"y": 3.0}).arg_names is None
    assert api_util.debug_info("test", f, ([1.0],), {"y": 3.0}, static_argnames=["y"]).arg_names is None
    flat, out_tree = api_util.flatten_fun(lu.wrap_init(f, debug_info=info), tree)
    assert flat.call_wrapped(*leaves) == [1.0, 4.0]
    assert tl.tree.unflatten(out_tree(), "ab") == {"first": "a", "sum": "b"}
    flat, out_tree = api_util.flatten_fun_nokwargs(lu.wrap_init(lambda x: x), tl.tree.structure(([0, 0],)))
    _, outs, _ = pe.trace_to_jaxpr_nounits(
        flat, [pe.PartialVal.known(1), pe.PartialVal.unknown(tl.core.ShapedArray((), np.dtype(np.float32)))]
    )
    assert outs[0].is_known() and outs[0].const == 1 and not outs[1].is_known()
    assert out_tree() == tl.tree.structure([0, 0])
    with pytest.raises(ValueError):
        api_util.safe_map(max, [1], [1, 2])


def test_programs_keep_constants_apart():
    """What a function is traced to: its arguments are inputs, and values of around are constants, tracers or not."""

    @tl.grad
    def gradient(scale):
        jaxpr, out_avals, consts = pe.trace_to_jaxpr_dynamic(
            lu.wrap_init(lambda x: (x * scale, tnp.sum(scale**2))), [tl.core.ShapedArray((), np.dtype(np.float32))]
        )
        assert (len(jaxpr.invars), len(jaxpr.constvars), [aval.shape for aval in out_avals]) == (1, 1, [(3,), ()])
        assert consts[0] is scale
        product, _ = tl.core.eval_jaxpr(jaxpr, consts, 2.0)
        without_input, used = pe.dce_jaxpr(jaxpr, [False, True])
        assert used == [False] and len(without_input.constvars) == 1
        return tnp.sum(product) + tl.core.eval_jaxpr(without_input, consts)[0]

    scale = np.array([1.0, 2.0, -3.0], np.float32)
    np.testing.assert_allclose(gradient(scale), 2 + 2 * scale)
    reference = tl.new_ref(tnp.zeros(()))
    with pytest.raises(NotImplementedError, match=r"where it cannot be: .*traced for trace_to_jaxpr_dynamic\."):
        pe.trace_to_jaxpr_dynamic(lu.wrap_init(lambda x: (reference[...], x)), [tl.typeof(1.0)])


def test_states_of_tracing():
    """Equal where the same transformations are around."""
    outside, seen = core.get_opaque_trace_state(), []

    @tl.jit
    def f(x):
        seen.append((core.get_opaque_trace_state(), core.get_opaque_trace_state(convention="test")))
        return tl.grad(lambda x: (seen.append((core.get_opaque_trace_state(), None)), x)[1])(x)

    f(tnp.float32(1))
    (here, same), (inner, _) = seen
    assert here == same and len({here, same}) == 1 and len({outside, here, inner}) == 3 and here != 1
    assert core.get_opaque_trace_state() == outside


def test_arguments_are_fixed_but_some():
    """Positions may be negative and in any order; a fixed argument needs a hash only if that is asked for."""
    fun = lu.wrap_init(lambda x, y, z, power: (x - 2 * y) ** power + z[0], {"power": 2})
    fixed, dynamic = api_util.argnums_partial(fun, (-2, 0), (1, 2, [5]), require_static_args_hashable=False)
    assert dynamic == (2, 1) and fixed.call_wrapped(20, 10) == (10 - 2 * 20) ** 2 + 5
    with raises(ValueError, "argnums_partial: a fixed argument of type list has no hash."):
        api_util.argnums_partial(fun, 0, (1, 2, [5]))
    with raises(ValueError, "argnums_partial: there is no argument 3, of 3."):
        api_util.argnums_partial(fun, 3, (1, 2, [5]))


def test_positions_and_names_complete_each_other():
    infer = partial(infer_argnums_and_argnames, signature(lambda a, b, /, c, d, *rest, e: None))
    assert infer((0, 2), None) == ((0, 2), ("c",)) and infer(3, None) == ((3,), ("d",))
    assert infer(None, "d") == ((3,), ("d",)) and infer(None, ("e", "c")) == ((2,), ("e", "c"))
    assert infer(1, "c") == ((1,), ("c",)) and infer(None, None) == ((), ())
