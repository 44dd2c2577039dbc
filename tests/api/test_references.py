"""References: read and written eagerly, in compiled functions, loops, branches, under vmap and derivatives."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.close import single_precision as close
from tests.messages import place, raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

X = np.array([0.5, 1.2, 0.3], np.float32)


# ---- by themselves -------------------------------------------------------------------------------------------


def test_reading_and_writing():
    ref = tl.new_ref(tnp.zeros((2, 3)))
    want = np.zeros((2, 3), np.float32)
    for index, value in [
        (0, X),
        ((1, 2), 4.0),
        ((slice(None), slice(None, None, 2)), 1),
        (np.array([1, 1]), X),
        (np.array([True, False]), 7.0),
        (..., 2.5),
        ((), np.arange(6.0, dtype=np.float32).reshape(2, 3)),
        (-1, X[None]),
    ]:
        ref[index] = value
        want[index] = value
        np.testing.assert_array_equal(ref[...], want)
        np.testing.assert_array_equal(ref[index], want[index])
    ref[0] += X
    want[0] += X
    ref.addupdate(1.0, (np.array([1, 1]), 0))
    want[1, 0] += 2
    ref.addupdate(X)
    close(ref[...], want + X)
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref)) == ((2, 3), np.float32, 2, 6, 2)
    assert str(ref.aval) == str(tl.typeof(ref)) == "Ref{float32[2,3]}" and isinstance(ref, tl.Ref)
    assert repr(tl.new_ref(tnp.arange(3))) == "Ref([0, 1, 2], dtype=int32)"


def test_functions_of_the_namespace():
    ref = tl.ref.new_ref(tnp.arange(5))
    np.testing.assert_array_equal(tl.ref.get(ref, slice(1, 3)), [1, 2])
    assert int(tl.ref.swap(ref, 3, 10)) == 3
    tl.ref.set(ref, 0, 7)
    tl.ref.addupdate(ref, 0, 1)
    tl.ref.addupdate(ref, None, 1)
    np.testing.assert_array_equal(tl.ref.get(ref), [9, 2, 3, 11, 5])
    np.testing.assert_array_equal(tl.freeze(ref), [9, 2, 3, 11, 5])
    assert tl.empty_ref(tl.ShapeDtypeStruct((2,), "float16")).dtype == np.float16
    assert tl.new_ref(tl.random.key(0))[...].shape == ()
    with raises(TypeError, "get: expected a reference, not 1 of type int."):
        tl.ref.get(1)


def test_the_type_never_changes():
    ref = tl.new_ref(0.0)
    ref[...] = tnp.asarray(2)
    assert (ref.dtype, ref.weak_type, ref[...].weak_type) == (np.float32, True, True)
    strong = tl.new_ref(tnp.zeros(()))
    strong[...] = tnp.asarray(2.0)
    strong.addupdate(1)
    assert (strong.weak_type, strong[...].weak_type) == (False, False)
    with pytest.raises(TypeError, match=r"float32\[\] cannot be written into int32\[\]"):
        tl.new_ref(tnp.zeros((), int))[...] = tnp.ones(())
    with pytest.raises(ValueError, match="do not broadcast"):
        tl.new_ref(tnp.zeros(3))[...] = tnp.ones(2)
    with pytest.raises(IndexError):
        tl.new_ref(tnp.zeros(3))[3] = 1.0
    with pytest.raises(IndexError):
        tl.new_ref(tnp.zeros(3))[3]


def test_references_are_no_arrays():
    ref = tl.new_ref(tnp.zeros(3))
    advice = "  A reference is no array: read what is in it, ref\\[...\\]."
    for wrong in (
        lambda: tnp.sin(ref),
        lambda: tl.grad(lambda r: r[0])(ref),
        lambda: tl.jit(lambda r: r)(ref),
        lambda: lax.scan(lambda c, _: (c, None), ref, None, 3),
        lambda: tl.new_ref(ref),
        lambda: tl.checkpoint(lambda r: r[0])(ref),
    ):
        with pytest.raises(TypeError, match=advice):
            wrong()
    for arithmetic in (lambda: ref + 1, lambda: 2 @ ref, lambda: tnp.ones(3) * ref, lambda: ref < 1, lambda: -ref):
        with pytest.raises(TypeError, match=advice):
            arithmetic()
    with raises(TypeError, "arithmetic with a reference: Ref{float32[3]}.\n" + advice.replace("\\", "")):
        _ = ref + 1
    with raises(TypeError, "a reference cannot be pickled: Ref{float32[3]}. Pickle what is in it, ref[...]."):
        __import__("pickle").dumps(ref)
    with raises(NotImplementedError, "new_ref: memory_space='x' and kind=None are not there, only None for both."):
        tl.new_ref(1.0, memory_space="x")


def test_ends():
    def frozen():
        ref = tl.new_ref(1.0)
        tl.freeze(ref)
        return ref[...]

    for f in (frozen, tl.jit(frozen)):
        with raises(ValueError, "a reference that was frozen is used: Ref{float32[]}."):
            f()
    ref = tl.new_ref(1.0)
    message = (
        "a reference is {} outside of the function that made it: Ref{{float32[]}}.\n"
        "  Only the function that makes a reference can end it; elsewhere read it, ref[...]."
    )
    for f, args in [(lambda r: tl.freeze(r), (ref,)), (lambda: tl.freeze(ref), ())]:
        with raises(ValueError, message.format("frozen")):
            tl.jit(f)(*args)
    with raises(ValueError, message.format("freed")):
        lax.fori_loop(0, 3, lambda i, c: (tl.free_ref(ref), c)[1], 0)
    tl.free_ref(ref)
    with raises(ValueError, "a reference that was freed is used: Ref{float32[]}."):
        tl.freeze(ref)


def test_leaks():
    kept = []

    def f(x):
        kept.append(tl.new_ref(x))
        return x

    for run in (tl.jit(f), tl.vmap(f), tl.grad(lambda x: f(x).sum())):
        run(tnp.ones(2))
        with pytest.raises(ValueError, match=r"a reference escaped its function: Ref\{float32\[.*\]\} of "):
            kept[-1][...]
    f(1.0)
    assert float(kept[-1][...]) == 1


# ---- compiled ------------------------------------------------------------------------------------------------


def test_closed_over():
    ref, traced = tl.new_ref(tnp.zeros(3)), []

    @tl.jit
    def f(x=0.0):
        traced.append(x)
        ref[1] += 1.0
        return ref[1] * 2

    assert [float(f()) for _ in range(3)] == [2, 4, 6]
    ref[...] = tnp.ones(3)
    assert float(f()) == 4 and len(traced) == 1
    np.testing.assert_array_equal(ref[...], [1, 2, 1])
    assert tl.eval_shape(f).shape == () and str(tl.make_jaxpr(lambda: ref[0])()).startswith("{ lambda a:f32[3]")
    np.testing.assert_array_equal(ref[...], [1, 2, 1])


def test_arguments():
    def f(refs, x, *, last):
        refs["a"][...] = refs["a"][...] + x
        last[0] = refs["a"][1]
        return refs["b"][...] * x

    refs = {"a": tl.new_ref(tnp.zeros(3)), "b": tl.new_ref(2.0)}
    last = tl.new_ref(tnp.zeros(1))
    jitted = tl.jit(f)
    assert float(jitted(refs, 2.0, last=last)) == 4 and float(last[0]) == 2
    compiled = jitted.lower(refs, 2.0, last=last).compile()
    assert float(compiled(refs, np.float32(3), last=last)) == 6 and float(last[0]) == 5
    assert len(compiled.as_text()) and str(jitted.trace(refs, 2.0, last=last).out_info) == str(
        tl.ShapeDtypeStruct((), np.float32, weak_type=True)
    )
    with pytest.raises(TypeError, match="serialize: f reads or writes references"):
        compiled.serialize()
    other = {"a": tl.new_ref(tnp.ones(3)), "b": tl.new_ref(1.0)}
    assert float(jitted(other, 2.0, last=last)) == 2 and float(last[0]) == 3
    with pytest.raises(ValueError, match=r"a donated argument of .* is a reference"):
        tl.jit(lambda r: r[0], donate_argnums=0)(last)


def test_only_what_is_written_comes_out():
    ref, other = tl.new_ref(tnp.zeros(3)), tl.new_ref(tnp.zeros(3))

    def f(r, s):
        r[...] = s[...] + 1

    assert len(tl.make_jaxpr(f)(ref, other).jaxpr.outvars) == 1
    with tl.transfer_guard("disallow"):
        tl.jit(f)(ref, other)


def test_aliases():
    ref = tl.new_ref(tnp.zeros(3))
    advice = "  Pass it once: what is written by one name would not be seen by the other."
    with pytest.raises(ValueError, match=r"reaches f at .* twice, argument a and argument b\['x'\]: Ref") as e:

        def f(a, b):
            pass

        tl.jit(f)(ref, {"x": ref})
    assert str(e.value).endswith(advice)
    for traced in (tl.jit, lambda f: tl.jit(f).lower, tl.make_jaxpr, lambda f: lambda *a: tl.eval_shape(f, *a)):
        with pytest.raises(ValueError, match=r"twice, closed over and argument a: Ref"):
            traced(lambda a: a.set(ref[...]))(ref)
        with pytest.raises(ValueError, match=r"twice, argument a and argument b: Ref"):
            traced(lambda a, b: a.set(b[...]))(ref, ref)
    ruled = tl.custom_vjp(lambda a, b: a[0] + b[0])
    ruled.defvjp(lambda a, b: (a[0] + b[0], None), lambda _, ct: (None, None))
    pushed = tl.custom_jvp(lambda a, b: a[0] + b[0])
    pushed.defjvp(lambda primals, tangents: (pushed(*primals), 0.0))
    for twice in (
        lambda: lax.cond(ref[0] == 0, lambda a, b: a[0] + b[0], lambda a, b: 0.0, ref, {"b": ref}),
        lambda: lax.cond(ref[0] == 0, lambda a: a.set(1.0), lambda a: ref.set(2.0), ref),
        lambda: lax.switch(0, [lambda a, b: a[0], lambda a, b: b[0]], ref, ref),
        lambda: tl.jit(lambda: lax.cond(ref[0] == 0, lambda a: a[0] + ref[0], lambda a: 0.0, ref))(),
        lambda: ruled(ref, ref),
        lambda: pushed(ref, ref),
        lambda: tl.jit(lambda: ruled(ref, ref))(),
        lambda: tl.vmap(lambda a, b: None)(ref, ref),
        lambda: tl.vmap(lambda a: ref[0] + a[...])(ref),
        lambda: tl.vjp(lambda a, b: a[0] * b[0], ref, ref),
        lambda: tl.jvp(lambda a: a[0] * ref[0], (ref,), (tl.new_ref(tnp.ones(3)),)),
    ):
        with pytest.raises(ValueError, match="a reference is used while it is an argument of"):
            twice()
    ref[...] = 1.0  # it is lent no more


def test_nested_functions_share_a_reference():
    def outer(x):
        ref = tl.new_ref(x)

        @tl.jit
        def inner(y):
            ref[...] = ref[...] * y
            return y + 1

        z = inner(x)
        tl.jit(lambda r, y: r.addupdate(y))(ref, inner(z))
        return ref[...].sum()

    def formula(x):
        return (x * x * (x + 1) + x + 2).sum()

    close(outer(X), formula(X))
    close(tl.jit(outer)(X), formula(X))
    for transform in (tl.grad, tl.jacfwd, lambda f: tl.jit(tl.grad(tl.jit(f)))):
        close(transform(outer)(X), 3 * X**2 + 2 * X + 1)
    close(tl.jit(tl.vmap(outer))(np.stack([X, 2 * X])), [formula(X), formula(2 * X)])


# ---- loops and branches --------------------------------------------------------------------------------------


def program(x):
    """Reads and writes in every kind of loop and branch."""
    r, s, n = tl.new_ref(tnp.zeros(3)), tl.new_ref(tnp.ones(3)), tl.new_ref(0)

    def body(c, y):
        r[1] += y
        n[...] += 1

        def inner(i, c):
            s[i] = s[i] * y + r[1]
            return c + s[0]

        c = lax.fori_loop(0, 2, inner, c)
        lax.cond(y > 1, lambda: r.addupdate(1.0, 0), lambda: None)
        lax.switch(n[...], [lambda q: None, lambda q: q.addupdate(c, 2), lambda q: q.set(c, 0)], r)
        return c, s[1]

    c, ys = lax.scan(body, 0.0, x)
    v = lax.while_loop(lambda v: v < s[2] + 5, lambda v: (r.set(r[...] * 1.5), v + 1)[1], 0.0)
    lax.map(lambda y: r.addupdate(y, 0), x)
    return c + v + (r[...] * np.float32([1, 2, 3])).sum() + ys.sum() + s[...].sum() * n[...]


def by_hand(x):
    r, s, n, c, ys = np.zeros(3), np.ones(3), 0, 0.0, []
    for y in x:
        r[1] += y
        n += 1
        for i in range(2):
            s[i] = s[i] * y + r[1]
            c = c + s[0]
        if y > 1:
            r[0] += 1
        if n == 1:
            r[2] += c
        if n >= 2:
            r[0] = c
        ys.append(s[1])
    v = 0.0
    while v < s[2] + 5:
        r, v = r * 1.5, v + 1
    r[0] += sum(x)
    return c + v + (r * [1, 2, 3]).sum() + sum(ys) + s.sum() * n


def test_control_flow():
    want = by_hand(X.astype(float))
    close(program(X), want)
    close(tl.jit(program)(X), want)
    with tl.disable_jit():
        close(program(tnp.asarray(X)), want)
    steps = [(by_hand(X + 1e-6 * e) - by_hand(X - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(tl.jit(tl.jacfwd(program))(X), steps, rtol=1e-3)
    close(tl.jit(tl.vmap(program, control_flow="select"))(np.stack([X, 2 * X])), [want, by_hand(2.0 * X)])


def test_reverse_mode_of_loops():
    def f(x):
        r = tl.new_ref(tnp.zeros(3))

        def body(c, y):
            i = (y > 1).astype(int)
            r[i] += y * c
            return c + r[0], r[1]

        c, ys = lax.scan(body, 1.0, x)
        return c + (ys**2).sum()

    reverse = tl.jit(tl.grad(f))(X)
    close(reverse, tl.jacfwd(f)(X))
    close(tl.grad(f)(X), reverse)
    close(tl.vmap(tl.grad(f))(np.stack([X, X]))[1], reverse)


def test_loops_write_into_global_references():
    ref = tl.new_ref(tnp.zeros(()))

    def total(x):
        return lax.scan(lambda c, y: (ref.addupdate(y), (c, y))[1], None, x)[1]

    total(X)
    tl.jit(total)(X)
    close(ref[...], 2 * X.sum())
    lax.fori_loop(0, 3, lambda i, c: (ref.set(c), c + 1.5)[1], 0)  # whose carry is traced twice
    close(ref[...], 3)
    message = (
        r"while_loop: <lambda> at .* writes a reference, Ref\{float32\[\]\}: a condition only reads.\n  Write it in"
    )
    with pytest.raises(ValueError, match=message):
        lax.while_loop(lambda c: (ref.set(c), c < 3)[1], lambda c: c + 1, 0.0)


# ---- vmap ----------------------------------------------------------------------------------------------------


def test_mapped_arguments():
    def distance(x, y, out):
        assert (x.ndim, y.ndim, out.ndim) == (1, 1, 0)
        out[...] = ((x - y) ** 2).sum()

    points, out = tnp.arange(12.0).reshape(3, 4), tl.new_ref(tnp.zeros((3, 3)))
    tl.vmap(tl.vmap(distance, (0, None, 0)), (None, 0, 0))(points, points, out)
    np.testing.assert_array_equal(out[...], 64.0 * np.subtract.outer(range(3), range(3)) ** 2)
    ref = tl.new_ref(tnp.zeros((2, 3)))
    for f in (tl.vmap, lambda f, d: tl.jit(tl.vmap(f, d))):
        doubled = f(lambda r, x: (r.addupdate(x), r[...] * 2)[1], (1, 0))(ref, X)
        close(doubled.T, 2 * ref[...])
    close(ref[...], 2 * X * np.ones((2, 1)))
    np.testing.assert_array_equal(tl.vmap(lambda r, x: r[0] + x, (None, 0))(ref, ref[...]), ref[0] + ref[...])


def test_examples_do_not_write_outside():
    ref = tl.new_ref(tnp.zeros(3))

    def reads(x):
        return lax.scan(lambda c, y: (c + ref[0] * y, None), 0.0, x)[0]

    np.testing.assert_array_equal(tl.vmap(reads)(np.stack([X, X])), [0, 0])
    for write in (
        lambda x: ref.set(x),
        lambda x: ref.addupdate(1.0, 0),
        lambda x: tl.jit(lambda: ref.set(tnp.ones(3)))(),
        lambda x: lax.scan(lambda c, y: (ref.addupdate(y), (c, c))[1], 0.0, x)[0],
    ):
        with pytest.raises(ValueError, match="a reference of outside is written under vmap"):
            tl.vmap(write)(np.stack([X, X]))
    np.testing.assert_array_equal(ref[...], [0, 0, 0])


# ---- derivatives ---------------------------------------------------------------------------------------------


def test_values_of_derivatives_stay_inside():
    ref = tl.new_ref(tnp.zeros(3))

    def f(x, ref):
        ref[...] = x * 5
        return x.sum()

    def g(x, ref):
        ref[...] = tl.stop_gradient(x) * 5
        return x.sum()

    message = (
        r"differentiated is written into a reference of outside: Ref\{float32\[3\]\}.\n  Differentiated: f at .*grad.\n"
    )
    with pytest.raises(ValueError, match=message):
        tl.grad(f)(X, ref)
    for gradient in (tl.grad(g), tl.jit(tl.grad(g)), tl.grad(tl.jit(g))):
        ref[...] = 0.0
        np.testing.assert_array_equal(gradient(X, ref), [1, 1, 1])
        close(ref[...], 5 * X)


@tl.custom_vjp
def stash(ref, x):
    return x


stash.defvjp(lambda ref, x: (x, ref), lambda ref, ct: (ref.set(ct), (None, ct))[1])


def test_cotangents_are_plumbed_out():
    def f(x, ref):
        return tnp.sin(stash(ref, x))

    for gradient in (tl.grad(f), tl.jit(tl.grad(f)), tl.grad(tl.jit(f)), tl.jit(tl.grad(tl.jit(f)))):
        ref = tl.new_ref(0.0)
        close(gradient(1.0, ref), np.cos(1))
        close(ref[...], np.cos(1))
    ref = tl.new_ref(tnp.zeros(3))
    close(tl.vmap(tl.grad(f))(X, ref), np.cos(X))
    close(ref[...], np.cos(X))
    close(tl.jit(f)(1.0, ref), np.sin(1))
    one = tl.new_ref(0.0)
    with pytest.raises(NotImplementedError, match=r"a reference from outside is used where it cannot be: Ref\{float32"):
        tl.grad(lambda x: lax.scan(lambda c, _: (stash(one, c) * x, None), 1.0, None, 3)[0])(2.0)


LOOPS = {
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0],
    "fori_loop": lambda f: lambda x: lax.fori_loop(0, 3, lambda i, c: f(c), x),
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x),
    "checkpoint": tl.checkpoint,
    "jit": tl.jit,
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("compute", [lambda f: f, tl.jit], ids=["eager", "jit"])
def test_a_backward_rule_inside_says_what_to_do(name, compute):
    """It cannot write a reference of outside; its cotangents are gradients by zeros that are added in its place."""
    ref = tl.new_ref(0.0)

    @tl.custom_vjp
    def logged(x):
        return x

    logged.defvjp(lambda x: (x, None), lambda _, ct: (ref.set(ct), (ct,))[1])
    with pytest.raises(NotImplementedError, match=r"(?s)backward rule of a call in a loop.*differentiate by them"):
        compute(tl.grad(LOOPS[name](lambda x: tnp.sin(logged(x)))))(0.5)
    assert float(ref[...]) == 0


def test_cotangents_of_a_loop_as_gradients_by_zeros():
    def f(x, zeros):
        return lax.scan(lambda c, zero: (tnp.sin(c + zero), None), x, zeros)[0]

    x = [0.5]
    for _ in range(3):
        x.append(np.sin(x[-1]))
    expected = np.cumprod([np.cos(v) for v in x[2::-1]])[::-1]
    close(tl.grad(f, 1)(0.5, tnp.zeros(3)), expected)


def test_gradients_of_references():
    def square(ref):
        return ref[...] ** 2

    def of_sine(ref):
        ref[...] = tnp.sin(ref[...])
        return ref[...] ** 2

    ref, gradient = tl.new_ref(2.0), tl.new_ref(100.0)
    y, pull_back = tl.vjp(square, ref)
    assert pull_back.with_refs(gradient)(1.0) == (tl.ad.GradRef(),)
    assert (float(y), float(gradient[...])) == (4, 104)
    with pytest.raises(ValueError, match="vjp: square was differentiated with respect to a reference"):
        pull_back(1.0)
    with pytest.raises(TypeError, match="with_refs: the gradient of a reference must go to a reference"):
        pull_back.with_refs(tl.ad.GradValue())

    def both(ref, gradient):
        tl.vjp(of_sine, ref)[1].with_refs(gradient)(1.0)

    for run in (both, tl.jit(both)):
        ref, gradient = tl.new_ref(2.0), tl.new_ref(0.0)
        run(ref, gradient)
        close(gradient[...], np.sin(4))
        close(ref[...], np.sin(2))
    ref, gradient = tl.new_ref(3.0), tl.new_ref(0.0)
    y, pull_back, aux = tl.vjp(lambda r: (square(r), {"n": r[...]}), ref, has_aux=True)
    pull_back.with_refs(gradient)(1.0)
    assert (float(y), float(aux["n"]), float(gradient[...])) == (9, 3, 6)
    with pytest.raises(TypeError, match="with has_aux=True square must return"):
        tl.vjp(square, ref, has_aux=True)
    y, t, aux = tl.jvp(lambda r: (square(r), r[...]), (ref,), (tl.new_ref(1.0),), has_aux=True)
    assert (float(y), float(t), float(aux)) == (9, 6, 3)
    ref, tangent = tl.new_ref(2.0), tl.new_ref(1.0)
    y, t = tl.jvp(lambda r, x: (r.addupdate(x * r[...]), x)[1], (ref, 3.0), (tangent, 1.0))
    assert [float(v) for v in (y, t, ref[...], tangent[...])] == [3, 1, 8, 6]
    with pytest.raises(TypeError, match="jvp: the tangent of a reference must be a reference"):
        tl.jvp(square, (ref,), (1.0,))


def test_gradients_are_added_up_in_references():
    take, x, total = tl.jit(lambda x, i: x[i]), tnp.arange(10.0), tl.new_ref(tnp.zeros(10))
    for i in (3, 5, 3):
        _, pull_back = tl.vjp(take, x, i)
        pulled = pull_back.with_refs(total, tl.ad.GradValue())(1.0)
        assert pulled[0] == tl.ad.GradRef() and pulled[1].dtype == tl.float0
    np.testing.assert_array_equal(total[...], 2.0 * (np.arange(10) == 3) + (np.arange(10) == 5))
    w, v = tnp.ones((4, 4)), tnp.ones(4)
    _, pull_back = tl.vjp(lambda p: p["w"] @ p["v"], {"w": w, "v": v})
    pulled = pull_back.with_refs({"w": tl.ad.GradValue(), "v": tl.ad.DontWant()})(v)
    np.testing.assert_array_equal(pulled[0]["w"], w)
    assert pulled[0]["v"] == tl.ad.DidntWant()
    with pytest.raises(TypeError, match=r"with_refs: expected a reference, GradValue\(\) or DontWant\(\), not 1.0"):
        pull_back.with_refs({"w": 1.0, "v": tl.ad.DontWant()})

    def accumulated(w, xs):
        total = tl.new_ref(tnp.zeros_like(w))

        def step(_, x):
            loss, pull_back = tl.vjp(lambda w: tnp.tanh(w @ x).sum(), w)
            pull_back.with_refs(total)(tnp.ones_like(loss))
            return None, loss

        losses = lax.scan(step, None, xs)[1]
        return tl.freeze(total), losses

    xs = tnp.arange(20.0).reshape(5, 4) / 20
    gradient, losses = tl.jit(accumulated)(w, xs)
    close(gradient, tl.grad(lambda w: sum(tnp.tanh(w @ x).sum() for x in xs))(w))
    assert losses.shape == (5,)


def test_integers_in_references_must_fit():
    ref, f = tl.new_ref(1), tl.jit(lambda r, x: x + r[...])
    np.testing.assert_array_equal(f(ref, np.ones(2, np.int8)), [2, 2])
    ref[...] = 300
    with pytest.raises(OverflowError, match="300"):
        f(ref, np.ones(2, np.int8))


# ---- loops over references -----------------------------------------------------------------------------------


def over_references(x, y, reverse=False):
    """Running sums of x in place, and y as it is read."""
    xs, ys = tl.new_ref(x), tl.new_ref(y)

    def step(total, each):
        x, y, k = each["x"], each["y"], each["k"]
        x[0] = total + x[0] * y[...]
        x.addupdate(k, 1)
        return x[0], y[...] + x[1]

    each = {"x": xs, "y": ys, "k": np.arange(3.0, dtype=np.float32)}
    total, outs = lax.scan(step, 0.0, each, reverse=reverse)
    return total, outs, xs[...], ys[...]


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_over_references(reverse):
    x, y = np.arange(6.0, dtype=np.float32).reshape(3, 2), X
    want, outs, total = x.copy(), np.zeros(3), 0.0
    for i in [2, 1, 0] if reverse else range(3):
        total = want[i, 0] = total + want[i, 0] * y[i]
        want[i, 1] += i
        outs[i] = y[i] + want[i, 1]
    for way in (over_references, tl.jit(over_references, static_argnames="reverse")):
        for found, expected in zip(way(x, y, reverse=reverse), (total, outs, want, y), strict=True):
            close(found, expected)
    with tl.disable_jit():
        close(over_references(x, y, reverse=reverse)[2], want)
    mapped = tl.vmap(lambda x: over_references(x, y, reverse)[2])(np.stack([x, 2 * x]))
    close(mapped[0], want)
    tl.testing.check_grads(lambda x, y: over_references(x, y, reverse)[:3], (x, y), order=1, atol=0.02, rtol=0.02)


def test_loops_over_references_of_outside():
    ref = tl.new_ref(tnp.zeros(3))
    tl.jit(lambda: lax.scan(lambda c, x: (c + 1, x[0].set(c)), 1, (ref,)))()
    close(ref[...], [1, 2, 3])
    close(lax.map(lambda x: x[...] * 2, ref), [2, 4, 6])
    shared = tl.vmap(lambda k: lax.map(lambda x: x[...] * k, ref))(np.arange(2.0, dtype=np.float32))  # is only read
    close(shared, [[0, 0, 0], [1, 2, 3]])
    with raises(TypeError, f"scan: the result[1] of {place(returning)} is Ref{{float32[]}} of type Ref, {NO_ARRAY}"):
        lax.scan(returning, 0, ref)
    with pytest.raises(ValueError, match="a reference is used while it is an argument of scan, by another name"):
        lax.scan(lambda c, x: (c, ref[0]), 0, ref)
    with pytest.raises(ValueError, match="a reference is used while it is an argument of scan, by another name"):
        lax.scan(lambda c, x: (c, None), 0, (ref, ref))
    with raises(ValueError, "scan: xs['a'] is float32[], which has no leading axis to go along."):
        lax.scan(lambda c, x: (c, None), 0, {"a": tl.new_ref(0.0)})
    close(ref[...], [1, 2, 3])


def returning(carry, x):
    return carry, x


NO_ARRAY = "which is not an array.\n  A reference is no array: read what is in it, ref[...]."


# ---- checkpoints ---------------------------------------------------------------------------------------------


def test_checkpoints_read_and_write_references_of_outside():
    factor, calls = tl.new_ref(3.0), tl.new_ref(0)

    @tl.checkpoint
    def f(x):
        calls[...] += 1
        return tnp.sin(x) * factor[...]

    looped = lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]  # noqa: E731
    for n, way in enumerate((lambda g: g, tl.jit)):
        close(way(tl.grad(f))(2.0), 3 * np.cos(2.0))
        close(way(tl.grad(looped))(2.0), 9 * np.cos(2.0) * np.cos(3 * np.sin(2.0)))
        assert int(calls[...]) == 3 * (n + 1)  # what is computed again is not written again
    factor[...] = 5.0
    close(tl.grad(f)(2.0), 5 * np.cos(2.0))
    close(tl.vmap(tl.checkpoint(lambda x: x * factor[...]))(X), 5 * X)
    with pytest.raises(ValueError, match="a value that is differentiated is written into a reference of outside"):
        tl.grad(tl.checkpoint(lambda x: (factor.set(x), x)[1]))(2.0)


def test_checkpoints_write_references_of_the_function_that_is_differentiated():
    def f(x):
        ref = tl.new_ref(x)

        def inner(y):
            ref[...] *= y
            return tnp.sin(ref[...])

        return tl.checkpoint(inner)(2 * x) * ref[...]

    same = lambda x: tnp.sin(2 * x**2) * 2 * x**2  # noqa: E731
    for transformation in (lambda g: g, tl.grad, tl.hessian):
        close(tl.jit(transformation(f))(0.7), transformation(same)(0.7))
    close(tl.vmap(tl.grad(f))(X), tl.vmap(tl.grad(same))(X))
