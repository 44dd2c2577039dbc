"""Primitives that a library defines, by rules with JAX's conventions, under every transformation."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.core import ShapedArray
from tapeless.extend.core import Primitive, primitives
from tapeless.extend.interpreters import ad, batching, mlir, xla
from tapeless.interpreters import jvp, transpose
from tests.messages import raises

X = np.array([1.0, 2.0, -0.5], np.float32)
_BY = "mlir.register_lowering(primitive, mlir.lower_fun(function))"


def cube() -> Primitive:
    """k x^3, one result, a param."""
    cube_p = Primitive("cube")

    @cube_p.def_impl
    def compute(x, *, k):
        return k * tnp.asarray(x) ** 3

    cube_p.def_abstract_eval(lambda x, *, k: ShapedArray(x.shape, x.dtype))
    ad.defjvp(cube_p, lambda t, x, *, k: 3 * k * x * x * t)
    batching.defvectorized(cube_p)
    mlir.register_lowering(cube_p, mlir.lower_fun(compute, multiple_results=False))
    return cube_p


def shift() -> Primitive:
    """(x + roll(x, n), 2 x), linear, two results, with all rules written out."""
    shift_p = Primitive("shift")
    shift_p.multiple_results = True

    def compute(x, *, n):
        return x + tnp.roll(x, n), 2 * x

    def jvp(primals, tangents, *, n):
        (t,) = tangents
        return shift_p.bind(*primals, n=n), shift_p.bind(t, n=n)

    def transpose(cts, x, *, n):
        assert ad.is_undefined_primal(x) and x.aval.shape == X.shape
        a, b = (ad.instantiate_zeros(ct) for ct in cts)
        return [a + tnp.roll(a, -n) + 2 * b]

    def batch(args, dims, *, n):
        (x,), (d,) = args, dims
        rows = [shift_p.bind(row, n=n) for row in tnp.moveaxis(x, d, 0)]
        return [tnp.stack(out, 1) for out in zip(*rows, strict=True)], [1, 1]

    shift_p.def_impl(compute)
    shift_p.def_abstract_eval(lambda x, *, n: [x, x])
    ad.primitive_jvps[shift_p] = jvp
    ad.primitive_transposes[shift_p] = transpose
    batching.primitive_batchers[shift_p] = batch
    mlir.register_lowering(shift_p, mlir.lower_fun(compute))
    return shift_p


CUBE, SHIFT = cube(), shift()


def f(x):
    return CUBE.bind(x, k=2.0).sum()


def g(x):
    a, b = SHIFT.bind(x, n=1)
    return (a * b).sum()


def g_plain(x):
    return ((x + tnp.roll(x, 1)) * 2 * x).sum()


PAIRS = {"one result": (f, lambda x: (2 * x**3).sum()), "two results": (g, g_plain)}


@pytest.mark.parametrize("name", PAIRS)
def test_all_transformations(name: str, optimized: None):
    ours, plain = PAIRS[name]
    x = tnp.asarray(X)
    xs = tnp.stack([x, 2 * x])
    for transform, args in [
        (lambda h: h, (x,)),
        (tl.jit, (x,)),
        (tl.grad, (x,)),
        (lambda h: tl.jit(tl.grad(h)), (x,)),
        (lambda h: lambda v: tl.jvp(h, (v,), (v,)), (x,)),
        (lambda h: tl.jit(tl.vmap(h)), (xs,)),
        (lambda h: tl.jit(tl.vmap(tl.grad(h))), (xs,)),
        (lambda h: tl.jit(tl.hessian(h)), (x,)),
        (lambda h: tl.grad(tl.checkpoint(h)), (x,)),
        (lambda h: tl.jit(lambda v: tl.lax.scan(lambda c, _: (c + 0.1 * tl.grad(h)(c), h(c)), v, None, 3)), (x,)),
    ]:
        got, want = (tl.tree.leaves(transform(h)(*args)) for h in (ours, plain))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_jax_gives_the_same():
    """The same definitions, JAX's Primitive and registries in the place of ours."""
    jax = pytest.importorskip("jax")
    core = pytest.importorskip("jax.extend.core")
    theirs = {name: pytest.importorskip(f"jax.interpreters.{name}") for name in ("ad", "batching", "mlir")}
    values = []
    for np_, grad, vmap, primitive, interpreters in (
        (jax.numpy, jax.grad, jax.vmap, core.Primitive, theirs),
        (tnp, tl.grad, tl.vmap, Primitive, {"ad": ad, "batching": batching, "mlir": mlir}),
    ):
        p = primitive("scaled")
        p.def_impl(lambda x, y: x * y)
        p.def_abstract_eval(lambda x, y: x)
        bind = p.bind
        interpreters["ad"].defbilinear(p, lambda ct, x, y, b=bind: b(ct, y), lambda ct, x, y, b=bind: b(x, ct))
        interpreters["batching"].defbroadcasting(p)
        interpreters["mlir"].register_lowering(p, interpreters["mlir"].lower_fun(lambda x, y: x * y, False))
        h = grad(lambda x, y, b=bind, n=np_: n.sum(b(b(x, y), x)), (0, 1))
        values.append([np.asarray(v) for v in (*h(X, X + 1), *vmap(h, (0, None))(np.stack([X, X + 1]), X))])
    for a, b in zip(*values, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_equations_have_the_primitive():
    eqn = tl.make_jaxpr(f)(X).eqns[0]
    assert eqn.primitive == CUBE and {CUBE: 1}[eqn.primitive] == 1 and {eqn.primitive: 2}[CUBE] == 2
    assert str(eqn) == "b:f32[3] = cube[k=2.0] a"
    assert tl.lax.stop_gradient_p == tl.make_jaxpr(tl.lax.stop_gradient)(1.0).eqns[0].primitive


def test_the_primitive_of_an_equation_keeps_the_conventions_of_the_library():
    """So an interpreter may use it or the primitive that was defined, which it finds in a table."""
    for primitive, of, params in ((CUBE, f, {"k": 2.0}), (SHIFT, g, {"n": 1})):
        found = tl.make_jaxpr(of)(X).eqns[0].primitive
        assert found.multiple_results == primitive.multiple_results
        want = primitive.bind(X, **params)
        for apply in (found.bind, found.impl, primitive.impl):
            outs = apply(X, **params)
            assert isinstance(outs, (list, tuple)) == found.multiple_results
            np.testing.assert_array_equal(outs, want)
        assert found.abstract_eval(tl.typeof(X), **params) == primitive.abstract_eval(tl.typeof(X), **params)


def test_without_impl_it_is_compiled():
    p = Primitive("twice")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lambda ctx, x: [x * len(ctx.avals_out) * 2])
    np.testing.assert_array_equal(p.bind(X), 2 * X)
    p.def_impl(lambda x: xla.apply_primitive(p, x))
    np.testing.assert_array_equal(p.bind(X), 2 * X)


@pytest.mark.parametrize("effect", [False, True])
def test_lowering_calls_python(effect: bool):
    """As a rule for JAX does it: by `emit_python_callback`, and with what it keeps alive."""
    p = Primitive("on_host")
    p.multiple_results = True
    p.def_abstract_eval(lambda x: [x, ShapedArray((), np.dtype(np.int32))])

    def lowered(ctx, x):
        avals = ctx.avals_in, ctx.avals_out
        outs, token, kept = mlir.emit_python_callback(
            ctx, lambda x: (2 * np.asarray(x), np.int32(x.size)), None, [x], *avals, has_side_effect=effect
        )
        ctx.module_context.add_keepalive(kept)
        assert token is None
        return outs

    mlir.register_lowering(p, lowered)
    doubled, size = tl.jit(lambda x: p.bind(x + 1))(X)
    np.testing.assert_array_equal(doubled, 2 * (X + 1))
    assert size == 3


def test_lowering_closes_over_arrays():
    table = tnp.asarray(X)
    p = Primitive("plus_table")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x + table, multiple_results=False))
    np.testing.assert_array_equal(tl.jit(p.bind)(X), 2 * X)
    in_a_loop = tl.jit(lambda x: tl.lax.fori_loop(0, 2, lambda i, c: p.bind(c.at[i].set(c[2])), x))
    np.testing.assert_array_equal(in_a_loop(X), [1.5, 1.0, -1.5])


def test_axis_rules_know_the_axis():
    p, seen = Primitive("mean"), []

    def batch(size, name, trace, args, dims):
        seen.append((size, name, dims))
        return args[0], dims[0]

    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)
    batching.axis_primitive_batchers[p] = batch
    tl.vmap(p.bind, in_axes=1, axis_name="i")(np.ones((2, 3), np.float32))
    assert seen == [(3, "i", (1,))]
    batching.fancy_primitive_batchers[p] = lambda axis, args, dims: (args[0] * axis.size, dims[0])
    np.testing.assert_array_equal(tl.vmap(p.bind)(X), 3 * X)


def test_registries_are_tables():
    p = Primitive("registered")
    assert p not in ad.primitive_jvps
    ad.defjvp_zero(p)
    assert p in ad.primitive_jvps and p in set(ad.primitive_jvps)
    del ad.primitive_jvps[p]
    assert ad.primitive_jvps.get(p) is None


def test_errors_name_what_is_missing():
    p = Primitive("bare")
    with raises(NotImplementedError, "bare: no abstract_eval rule. Define it by primitive.def_abstract_eval."):
        tl.jit(p.bind)(1.0)
    p.def_abstract_eval(lambda x: x)
    by = _BY
    with raises(NotImplementedError, f"bare: no lowering rule. Define it by {by}."):
        p.bind(1.0)
    with raises(NotImplementedError, "bare: no jvp rule. Define it by ad.primitive_jvps[primitive] = rule."):
        tl.grad(p.bind)(1.0)
    with raises(
        NotImplementedError, "bare: no batching rule. Define it by batching.primitive_batchers[primitive] = rule."
    ):
        tl.vmap(p.bind)(X)
    with pytest.raises(tl.errors.LinearityError, match=r"say so by ad\.def_linear_in\(primitive, \*positions of op"):
        tl.linear_transpose(p.bind, 1.0)
    ad.def_linear_in(p)
    with pytest.raises(
        NotImplementedError, match=r"no transpose rule for 'bare': it has none\. Define it by ad\.primitive_tr"
    ):
        tl.linear_transpose(p.bind, 1.0)(1.0)
    with pytest.raises(TypeError, match="not an array or a number"):
        p.bind([1.0])
    with raises(TypeError, "stop_gradient is a primitive of Tapeless, with rules of its own, which cannot be changed."):
        ad.primitive_jvps[tl.lax.stop_gradient_p] = lambda primals, tangents: None


def test_programs_among_params_are_kept():
    """No pass rewrites them: a library compares them with others that it keeps."""
    program = tl.make_jaxpr(lambda x: tl.jit(tnp.sin)(x) * 1 + 0)(X).jaxpr
    seen, p = [], Primitive("carrying")

    def compute(x, *, programs, which):
        seen.append(programs[which] is program)
        return tl.core.eval_jaxpr(program, (), x)[0]

    p.def_impl(compute)
    p.def_abstract_eval(lambda x, **_: ShapedArray(x.shape, x.dtype))
    ad.deflinear2(p, lambda ct, x, **params: (p.bind(ct, **params),))
    mlir.register_lowering(p, mlir.lower_fun(compute, multiple_results=False))
    f = tl.checkpoint(lambda x: p.bind(x, programs=(None, program), which=1).sum())
    assert tl.jit(tl.grad(lambda x: 2 * f(x)))(X).tolist() == [float(np.sin(np.float32(2)))] * 3
    tl.jit(lambda x: tl.lax.fori_loop(0, 2, lambda i, y: y + f(x), 0.0))(X)
    assert seen and all(seen)


def test_our_primitives_take_the_transpose_rule_that_they_lack():
    """As lineax does: stopped gradients are linear in linear functions, and stay zero in derivatives."""
    stopped, double = tl.lax.stop_gradient_p, lambda x: 2 * tl.lax.stop_gradient(x)
    with pytest.raises(TypeError, match="stop_gradient is applied to a linear value"):
        tl.linear_transpose(double, X)
    for _ in range(2):  # a library may be imported twice
        ad.primitive_transposes[stopped] = lambda ct, x: (ct,)
    try:
        assert tl.linear_transpose(double, X)(X)[0].tolist() == (2 * X).tolist()
        assert tl.grad(lambda x: double(x).sum())(X).tolist() == [0.0] * len(X)
    finally:
        del transpose.rules[stopped.operation], jvp.structurally_linear[stopped.operation]
    with raises(TypeError, "jit is a primitive of Tapeless, with rules of its own, which cannot be changed."):
        ad.primitive_transposes[primitives.jit_p] = lambda ct, x: (ct,)


def test_rules_that_give_other_types_are_refused():
    p = Primitive("odd")
    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)
    ad.primitive_jvps[p] = lambda primals, tangents: (primals[0], tangents[0].sum())
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x.sum(), multiple_results=False))
    batching.primitive_batchers[p] = lambda args, dims: (args[0].sum(), 0)
    with raises(TypeError, "odd: its jvp rule gave float32[] as tangents of float32[3]."):
        tl.jvp(p.bind, (X,), (X,))
    with raises(TypeError, "odd: its lowering rule gave float32[] as results of types float32[3]."):
        tl.jit(p.bind)(X)
    with raises(TypeError, "odd: its batching rule says that 3 examples are along axis 0 of ()."):
        tl.vmap(p.bind)(X)
    p.multiple_results = True
    with pytest.raises(TypeError, match=r"odd: it has multiple results, and its impl rule gave .*, no sequence."):
        p.bind(1.0)


def test_a_lowering_rule_for_one_platform_is_not_used():
    p = Primitive("on_one_platform")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lambda ctx, x: [x * 3], platform="cuda")
    rule = "register_lowering: the only rule of on_one_platform is for 'cuda'."
    with raises(NotImplementedError, f"{rule}\n  Give one for all platforms, platform=None."):
        p.bind(X)
    mlir.register_lowering(p, lambda ctx, x: [x * 2])
    mlir.register_lowering(p, lambda ctx, x: [x * 3], platform="cuda")
    assert p.bind(X).tolist() == (2 * X).tolist()


def test_transpose_rules_hold_arrays_of_their_own():
    """Inside of a program that is transposed as a whole, too; a traced array cannot be held there."""
    p, held = Primitive("weigh"), [tnp.array([1.0, 2.0, 4.0])]
    p.def_abstract_eval(lambda x: x)
    p.def_impl(lambda x: x * held[0])
    ad.deflinear2(p, lambda ct, x: (ct * held[0],))
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x * held[0], False))
    weighted = tl.jit(lambda x: p.bind(x).sum())
    assert tl.grad(weighted)(X).tolist() == tl.jit(tl.grad(weighted))(X).tolist() == [1, 2, 4]

    def traced(w):
        held[0] = w
        return tl.grad(tl.jit(lambda x: (p.bind(x) * 3).sum()))(X)

    with pytest.raises(tl.errors.UnexpectedTracerError, match="a traced array reached"):
        tl.jit(traced)(X)


def test_eager_checkpoints_compute_what_has_no_lowering_rule():
    """By `def_impl`, one by one, forward and backward, and nested; compiled programs need one."""
    forward, backward = [], []
    p = Primitive("on_host")
    p.def_impl(lambda x: forward.append(1) or 2 * x)
    p.def_abstract_eval(lambda x: x)
    ad.deflinear(p, lambda ct: backward.append(1) or (2 * ct,))

    def f(x):
        return tnp.sin(p.bind(x * x))

    for kept in (tl.checkpoint(f), tl.checkpoint(lambda x: tl.checkpoint(f)(x))):
        assert kept(0.5) == f(0.5)
        forward.clear()
        backward.clear()
        assert tl.value_and_grad(kept)(0.5) == tl.value_and_grad(f)(0.5)
        assert len(forward) >= 3 and len(backward) == 2
    with raises(NotImplementedError, "on_host: no lowering rule. Define it by " + _BY + "."):
        tl.jit(tl.checkpoint(f))(0.5)
