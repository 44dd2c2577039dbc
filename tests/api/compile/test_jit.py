"""jit as users call it: arguments, caching, closures, donation, and the stages ahead of time."""

import functools
import gc
import inspect
import re
import threading
import weakref

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.compile import jit_cache
from tests.close import one_rounding as close
from tests.messages import place, raises

X = np.array([1.0, 2.0])


def f(x, y):
    return tnp.sin(x) * y


class Counter:
    """A function that counts how often Python runs it."""

    def __init__(self, function):
        self.function, self.calls = function, 0
        self.__name__ = "counted"

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


# ---- arguments and results ------------------------------------------------------------------------------------


def test_pytrees_in_and_out():
    @tl.jit
    def swap(p, *, scale):
        return {"b": p["a"], "a": (p["b"] * scale, None, [])}

    result = swap({"a": X, "b": 3.0}, scale=2.0)
    assert result["a"][1:] == (None, [])
    close(result["a"][0], 6)
    close(result["b"], X)


@pytest.mark.parametrize(
    "function, args, expected",
    [
        (lambda: (), (), ()),
        (lambda: None, (), None),
        (lambda: 2.5, (), 2.5),
        (lambda x: x, (1.5,), 1.5),
        (lambda x, y: y, (1.5, 2.5), 2.5),
        (lambda *xs: sum(xs), (1, 2, 3), 6),
        (lambda x: {}, (1.5,), {}),
        (lambda x: x, (True,), True),
    ],
)
def test_small_functions(function, args, expected):
    for _ in range(2):
        assert tl.jit(function)(*args) == expected


def test_results_are_separate_arrays():
    a, b = tl.jit(lambda x: (x, x))(tnp.asarray(X))
    a.delete()
    close(b, X)


def test_weak_types_survive():
    double = tl.jit(lambda x: 2 * x)
    assert double(1.0).weak_type and double(1.0).dtype == np.float32
    assert double(1).weak_type and double(1).dtype == np.int32
    assert not double(np.array(1.0)).weak_type and double(np.array(1.0)).dtype == np.float64
    assert (double(1.0) + np.array(1.0)).dtype == np.float64


def test_numbers_too_big_are_refused():
    with pytest.raises(OverflowError):
        tl.jit(lambda x: x)(2**40)


# ---- static arguments -----------------------------------------------------------------------------------------


def test_static_arguments_by_number_name_and_default():
    power = tl.jit(lambda x, n=2: x**n, static_argnums=1)
    assert (power(3.0), power(3.0, 3), power(3.0, n=4), power(x=3.0, n=1)) == (9.0, 27.0, 81.0, 3.0)
    named = tl.jit(lambda x, n=2: x**n, static_argnames="n")
    assert (named(3.0), named(3.0, 3), named(3.0, n=4)) == (9.0, 27.0, 81.0)
    last = tl.jit(lambda x, *, n: x**n, static_argnames=["n"])
    assert last(3.0, n=3) == 27.0
    negative = tl.jit(lambda n, x, m: x**n + m, static_argnums=(0, -1))
    assert negative(2, 3.0, 1) == 10.0


def test_static_by_position_and_by_name_are_taken_as_they_are():
    """As in JAX, if both are given; else one completes the other."""

    def is_traced(x, n, m=1):
        seen.append(tuple(isinstance(v, tl.core.Tracer) for v in (x, n, m)))
        return x

    seen = []
    both, one = tl.jit(is_traced, static_argnums=1, static_argnames="m"), tl.jit(is_traced, static_argnums=(1, 2))
    both(1.0, 2, np.ones(2))
    both(1.0, 2, m=3)
    both(1.0, n=np.ones(2), m=3)
    one(1.0, n=2, m=3)
    assert seen == [(True, False, True), (True, False, False), (True, True, False), (True, False, False)]


def test_what_looks_different_is_different():
    shown = tl.jit(lambda n: np.frombuffer(repr(n).encode().ljust(16), np.uint8), static_argnums=0)
    values = [1, 1.0, True, np.float64(1), (1,), (1.0,), ((True,),), ((1,),), 0.0, -0.0, (0.0,), (-0.0,), 0j, -0j]
    values += [kind(zero) for kind in (np.float32, np.complex64, tnp.bfloat16.dtype.type) for zero in (0.0, -0.0)]
    values += [frozenset([1]), frozenset([True]), (frozenset([1.0]),)]
    for value in [*values, *values[::-1]]:
        assert bytes(np.asarray(shown(value))).decode().strip() == repr(value)


def test_nan_is_traced_once():
    counter = Counter(lambda x, n: x)
    jitted = tl.jit(counter, static_argnums=1)
    for kind in (float, np.float32):
        for _ in range(3):
            jitted(1.0, kind("nan"))
    assert counter.calls == 2


def test_static_functions_and_classes():
    apply = tl.jit(lambda g, x: g(x), static_argnums=0)
    close(apply(tnp.sin, X), np.sin(X))
    close(apply(tnp.cos, X), np.cos(X))


# ---- jit made anew --------------------------------------------------------------------------------------------


def counted():
    """A new plain function, and how often it was traced."""
    calls = []

    def scaled(x, n=2):
        calls.append(n)
        return x * n

    return scaled, calls


def test_jit_made_anew_traces_nothing():
    scaled, calls = counted()
    for _ in range(3):
        close(tl.jit(scaled)(X), 2 * X)
        close(tl.jit(scaled)(x=X), 2 * X)
        close(tl.jit(lambda x: tl.jit(scaled)(x))(X), 2 * X)
    assert len(calls) == 2


def test_jit_made_anew_with_other_options_or_settings_traces_again():
    scaled, calls = counted()
    options = [
        {}, {"static_argnums": 1}, {"donate_argnums": 0}, {"inline": True}, {"device": tl.devices()[0]},
        *[{"compiler_options": {"xla_cpu_enable_fast_math": value}} for value in (True, False)],
    ]  # fmt: skip
    for count, given in enumerate(options, 1):
        for _ in range(2):
            close(tl.jit(scaled, **given)(tnp.asarray(X)), 2 * X)
        assert len(calls) == count
    close([tl.jit(scaled, static_argnums=1)(tnp.asarray(X), n) for n in (3, 4)], [3 * X, 4 * X])
    with tl.config.scope(default_bits=64):
        assert tl.jit(scaled)(1.0).dtype == np.float64
    assert tl.jit(scaled)(1.0).dtype == np.float32


def test_functions_of_the_same_text_are_different_functions():
    scales = [tl.jit(lambda x: x * n)(1.0) for n in (2, 3)]  # noqa: B023  # that is the question
    assert scales == [2, 3]


def test_a_function_whose_code_is_replaced_is_another_function():
    def changing(x):
        return x + 1

    assert tl.jit(changing)(1.0) == 2
    changing.__code__ = (lambda x: x + 2).__code__
    assert tl.jit(changing)(1.0) == 3


def test_objects_whose_attributes_may_change_are_traced_anew():
    class Model:
        weight = 2.0

        def __call__(self, x):
            return self.weight * x

        scale = __call__

    model, factors = Model(), [2.0]
    partial = functools.partial(lambda factors, x: factors[0] * x, factors)
    assert [tl.jit(g)(1.0) for g in (model, model.scale, partial)] == [2, 2, 2]
    model.weight = factors[0] = 3.0
    assert [tl.jit(g)(1.0) for g in (model, model.scale, partial)] == [3, 3, 3]


def test_a_value_that_is_traced_is_not_remembered():
    def outer(y):
        inner = functools.partial(tnp.multiply, y)

        def scaled(x):
            return inner(x)

        return [tl.jit(scaled)(X), tl.jit(scaled)(X)]

    assert all(np.array_equal(a, 3 * X) for a in tl.jit(outer)(3.0))
    close(tl.jacfwd(outer)(3.0)[1], X)


def functions_and_captures():
    """A function of a captured array and of functions that it captures, jitted; weak references to all of these."""
    inner, _ = counted()
    weight = tnp.ones(3)
    ruled = tl.custom_jvp(lambda x: x**2)
    ruled.defjvp(lambda primals, tangents: (ruled(*primals), 2 * primals[0] * tangents[0]))

    def loss(x):
        return tnp.sum(ruled(x) * tl.jit(inner)(x) * weight)

    for _ in range(2):
        tl.jit(loss)(tnp.ones(3)), tl.jit(loss)(x=np.ones(3, np.float32)), tl.jit(tl.grad(loss))(tnp.ones(3))
        tl.jit(loss).lower(tnp.ones(3)).compile()
    assert loss in jit_cache._functions
    return [weakref.ref(loss), weakref.ref(inner), weakref.ref(weight), weakref.ref(ruled)]


def test_programs_go_with_their_function():
    gone = functions_and_captures()
    gc.collect(), gc.collect()  # what the programs of the function hold, cycles among it, is free after that
    assert [ref() for ref in gone] == [None] * 4


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(jit_cache, "_FUNCTIONS_LIMIT", 2)
    monkeypatch.setattr(jit_cache, "_PROGRAMS_LIMIT", 3)
    monkeypatch.setattr(jit_cache, "_CALLS_LIMIT", 3)
    monkeypatch.setattr(jit_cache, "_functions", weakref.WeakKeyDictionary())
    functions = [counted() for _ in range(4)]
    jitted = [tl.jit(scaled) for scaled, _ in functions]
    for n in [i for i in range(1, 6) for _ in range(3)]:
        close(jitted[0](tnp.ones(n)), 2 * np.ones(n))
        close(jitted[0]((tnp.ones(n),)[0], n), n * np.ones(n))
    programs = jitted[0]._programs
    assert all(len(table) <= 3 for table in (programs.calls, programs.compiled, programs.traces))
    assert len(jit_cache._functions) <= 2
    tl.jit(functions[-1][0])(X), tl.jit(functions[-1][0])(X)
    assert len(functions[-1][1]) == 1


def test_clear_caches_forgets_all_programs():
    scaled, calls = counted()
    jitted = tl.jit(scaled)
    jitted(X), tl.clear_caches(), jitted(X), tl.jit(scaled)(X)
    assert len(calls) == 2


# ---- how often it is traced -----------------------------------------------------------------------------------


def test_traced_once_for_every_type():
    counter = Counter(lambda x: x * x)
    jitted = tl.jit(counter)
    for x, calls in [
        (X, 1), (X + 1, 1), (tnp.asarray(X), 1), (np.ones(3), 2), (np.ones((2, 1)), 3), (np.ones(2, np.float32), 4),
        (1.0, 5), (2.0, 5), (np.float32(3), 5), (tnp.asarray(2.0), 5), (1, 6), (np.array(1.0), 7), (np.float64(1), 8),
    ]:  # fmt: skip
        jitted(x)
        assert counter.calls == calls, x
    jitted(x=X)
    assert counter.calls == 9
    with tl.config.scope(default_bits=64):
        jitted(1.0)
    assert counter.calls == 10
    jitted.clear_cache()
    jitted(X)
    assert counter.calls == 11


def test_structures_are_part_of_the_type():
    counter = Counter(lambda p: p)
    jitted = tl.jit(counter)
    for p in ((X, X), [X, X], {"a": X, "b": X}, {"a": X, "c": X}, (X, (X,)), (X, None)):
        jitted(p)
        jitted(p)
    assert counter.calls == 6


@tl.tree_util.register_pytree_node_class
class Configured:
    """An array, with settings that have == but no hash."""

    def __init__(self, x, settings):
        self.x, self.settings = x, settings

    def tree_flatten(self):
        return (self.x,), self.settings

    @classmethod
    def tree_unflatten(cls, settings, children):
        return cls(*children, settings)


@pytest.mark.parametrize("x", [X, tnp.asarray(X)], ids=["NumPy", "ours"])
def test_auxiliary_data_need_no_hash(x):
    calls = []

    @tl.jit
    def scaled(p):
        calls.append(p)
        return Configured(p.x * p.settings["scale"], {"scaled": [p.settings["scale"]]})

    settings = {"scale": 2.0}
    for _ in range(3):
        result = scaled(Configured(x, settings))
        close(result.x, 2 * X)
        assert result.settings == {"scaled": [2.0]}
        result.settings["scaled"].append("changed")  # that of one result is not that of another
    close(scaled(Configured(x, {"scale": 2.0})).x, 2 * X)
    assert len(calls) == 1
    settings["scale"] = 3.0
    close(scaled(Configured(x, settings)).x, 3 * X)
    close(tl.jit(lambda p: scaled(p).x)(Configured(x, settings)), 3 * X)
    close(scaled(Configured(x, {"scale": 2.0})).x, 2 * X)
    assert len(calls) == 2


def test_derivatives_trace_a_jitted_function_once():
    counter = Counter(lambda x: tnp.sum(tnp.sin(x) * x))
    jitted = tl.jit(counter)
    for transform in (lambda g: g, tl.grad, lambda g: tl.grad(tl.jit(g)), tl.jit, lambda g: tl.jit(tl.grad(g))):
        transform(jitted)(X)
        transform(jitted)(X)
    assert counter.calls == 1


def test_many_threads_get_the_same():
    jitted, results, start = tl.jit(lambda x, n: f(x, x) * n), [], threading.Barrier(8)

    def work():
        start.wait()
        results.extend(jitted(X, n) / n for n in range(1, 6))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    close(results, [np.sin(X) * X] * 40)


# ---- closures -------------------------------------------------------------------------------------------------


def test_arrays_closed_over_are_arguments_of_the_program():
    w = np.arange(2.0)
    jitted = tl.jit(lambda x: x @ w)
    text = jitted.lower(X).as_text()
    assert text.count("%arg1") >= 1 and "dense<[" not in text
    close(jitted(X), 2)


def test_arrays_closed_over_are_read_when_it_is_traced():
    w = np.arange(2.0)
    s = np.array(2.0)
    jitted = tl.jit(lambda x: x @ w * s)
    close(jitted(X), 4)
    w[:], s[...] = 100, 100
    close(jitted(X), 4)
    close(tl.grad(jitted)(X), [0, 2])
    close(tl.jit(lambda x: jitted(x) + 1)(X), 5)


def test_arrays_closed_over_in_many_programs():
    w = tnp.asarray(X)
    inner = tl.jit(lambda x: x * w)
    close(tl.jit(lambda x: inner(inner(x)) + w)(X), X**3 + X)
    close(tl.grad(lambda x: tnp.sum(inner(inner(x))))(X), X**2)


def test_tracers_closed_over():
    close(tl.jit(lambda x: tl.jit(lambda y: x * y)(x))(X), X * X)
    close(tl.jit(lambda x: tl.jit(lambda: x * x)())(X), X * X)


# ---- one function of the module for one program ---------------------------------------------------------------


def functions(text):
    return text.count("func.func")


def test_nested_programs_are_compiled_once():
    inner = tl.jit(lambda x: tnp.sin(x) * x)

    def thrice(x):
        return tnp.sum(inner(inner(inner(x))))

    assert functions(tl.jit(thrice).lower(X).as_text()) == 2
    assert functions(tl.jit(tl.grad(thrice)).lower(X).as_text()) == 3  # main, forward, backward
    assert functions(tl.jit(lambda x: inner(inner(x)) + inner(inner(x[:1]))).lower(X).as_text()) == 3  # of two types
    assert functions(tl.jit(lambda x: inner(x) + inner(x[:1])).lower(X).as_text()) == 1  # each called once


def test_gradients_of_nested_calls_grow_linearly():
    def nested(n):
        @tl.jit
        def g(x):
            return tnp.sin(x) * x if n == 0 else nested(n - 1)(x) * x

        return g

    operations = [tl.jit(tl.grad(nested(n))).lower(1.0).as_text().count("stablehlo.") for n in (4, 8, 16)]
    assert operations[2] - operations[1] == 2 * (operations[1] - operations[0])


def test_inline():
    inner = tl.jit(tnp.sin, inline=True)
    assert functions(tl.jit(lambda x: inner(x) * inner(x)).lower(X).as_text()) == 1


# ---- as a decorator, of methods -------------------------------------------------------------------------------


class Model:
    def __init__(self, w):
        self.w = w

    @functools.partial(tl.jit, static_argnums=0)
    def scaled(self, x):
        return self.w * x

    @tl.jit
    def refused(self, x):
        return x


def test_methods():
    assert (Model(3.0).scaled(2.0), Model(4.0).scaled(2.0)) == (6.0, 8.0)
    with pytest.raises(TypeError, match="Make it static"):
        Model(3.0).refused(1.0)
    close(tl.jit(Model(3.0).scaled)(X), 3 * X)


def test_decorator_with_and_without_arguments():
    @tl.jit(static_argnames="n", compiler_options={"xla_cpu_enable_fast_math": False})
    def power(x, n):
        """x to the n."""
        return x**n

    power.__wrapped__.unit = "m"
    assert (power.__name__, power.__doc__, tl.jit(power.__wrapped__).unit) == ("power", "x to the n.", "m")
    assert power._cache_size() == 0 and power(2.0, n=3) == 8.0 and power._cache_size() == 1
    assert repr(tl.jit(f)) == f"<jit of {place(f)}>"


def test_callable_objects_and_partials():
    close(tl.jit(Counter(tnp.sin))(X), np.sin(X))
    close(tl.jit(functools.partial(f, X))(X), np.sin(X) * X)
    _, push_forward = tl.linearize(tnp.sin, X)
    close(tl.jit(push_forward)(X), np.cos(X) * X)


def test_what_is_not_a_function():
    with raises(TypeError, "jit: expected a function, not 3."):
        tl.jit(3)


# ---- donation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"donate_argnums": 0}, {"donate_argnames": "x"}, {"donate_argnums": (-2,)}])
def test_donated_arguments_are_gone(options):
    x, y = tnp.asarray(X), tnp.asarray(X)
    double = tl.jit(lambda x, y: (2 * x, y), **options)
    close(double(x, y)[0], 2 * X)
    assert x.is_deleted() and not y.is_deleted()
    message = (
        "x, argument 0 of <lambda>, has been deleted or donated: float64[2].\n"
        "  A program that took it by donate_argnums reused its memory, or delete() was called.\n"
        "  Use the program's result instead, or pass a copy."
    )
    with raises(RuntimeError, message):
        double(x, y)
    close(double(tnp.asarray(X), y)[0], 2 * X)


def test_mistakes_of_donation_leave_nothing_on_stderr(capfd):
    """jaxlib would print a line before it raises."""
    total = tl.jit(lambda x, y: x + y, donate_argnums=0)
    x, y = tnp.ones(3), tnp.ones(3)
    total(x, y)
    double = tl.jit(lambda x: 2 * x)
    calls = lambda: total(x, y), lambda: total(x, 2.0), lambda: total.lower(y, y).compile()(x, y), lambda: double(x)
    for call in (*calls, lambda: x + 1, lambda: tnp.sin(x)):
        with pytest.raises(RuntimeError, match="has been deleted or donated") as caught:
            call()
        assert type(caught.value) is RuntimeError
    with pytest.raises(ValueError, match=r"and y, argument 1 of .* are one array"):
        total(y, y)
    assert total(2.0, 2.0) == total(2.0, 2.0) == 4.0  # numbers have nothing to lose
    assert capfd.readouterr().err == ""


def test_deleted_leaves_are_named():
    params = {"bn1": {"bias": tnp.ones(3)}, "w": tnp.ones(3)}

    def step(params, x, scale=1):
        return {"bn1": {"bias": params["bn1"]["bias"] + x * scale}, "w": params["w"]}

    def wrong(scale):
        return params["w"] * scale

    jitted = tl.jit(step, donate_argnums=0, static_argnames="scale")
    compiled = tl.jit(step).lower(params, 1.0).compile()
    jitted(params, 1.0)
    gone = (
        " has been deleted or donated: float32[3].\n"
        "  A program that took it by donate_argnums reused its memory, or delete() was called.\n"
        "  Use the program's result instead, or pass a copy."
    )
    for call in (
        lambda: jitted(params, 1.0),
        lambda: jitted(params, 1.0, scale=1),
        lambda: jitted(params=params, x=1.0),
        lambda: tl.jit(step)(params, tnp.ones(())),
        lambda: tl.jit(step)(params, np.float32(1)),
    ):
        with pytest.raises(RuntimeError) as caught:
            call()
        assert type(caught.value) is RuntimeError
        assert re.fullmatch(
            r"params\['bn1'\]\['bias'\], in (argument 0|an argument) of step," + re.escape(gone), str(caught.value)
        )
    with raises(RuntimeError, f"argument params['bn1']['bias'] of {place(step)}{gone}"):
        compiled(params, 1.0)
    with raises(RuntimeError, f"an array that {place(wrong)} takes from outside{gone}"):
        tl.jit(wrong)(2.0)
    with raises(RuntimeError, "operand 0 of 'add'" + gone):
        tl.tree.map(lambda p: p + 1, params)
    with raises(RuntimeError, "operand 0 of 'scan'" + gone):
        lax.scan(lambda c, x: (c, x), params["w"], tnp.ones(2))
    with raises(RuntimeError, "save: the leaf at ['bn1']['bias']" + gone):
        tl.save("nowhere", params)


@pytest.mark.parametrize("follow_wrapped", [True, False])
def test_the_signature_is_the_functions(follow_wrapped: bool):
    """For wrappers that bind arguments by it, and do not look behind it."""
    f = tl.jit(lambda x, n=2, *, scale: x, static_argnames="n")
    assert str(inspect.signature(f, follow_wrapped=follow_wrapped)) == "(x, n=2, *, scale)"
    with pytest.raises(ValueError, match="no signature found for builtin"):
        inspect.signature(tl.jit(max), follow_wrapped=follow_wrapped)


def test_donated_memory_is_used():
    compiled = tl.jit(lambda x: 2 * x, donate_argnums=0).lower(X).compile()
    assert compiled.memory_analysis().alias_size_in_bytes == X.nbytes


def test_donation_with_static_arguments_and_pytrees():
    def g(n, p, x):
        return p["a"] * n + x, p["b"] + x

    p, x = {"a": tnp.asarray(X), "b": tnp.asarray(X)}, tnp.asarray(X)
    tl.jit(g, static_argnums=0, donate_argnums=1)(2, p, x)
    assert p["a"].is_deleted() and p["b"].is_deleted() and not x.is_deleted()


# ---- ahead of time --------------------------------------------------------------------------------------------


def test_texts_of_a_lowered_function():
    lowered = tl.jit(f).lower(X, X)
    with_lines = lowered.as_text(debug_info=True)
    assert re.search(r'= "stablehlo.sine".* loc\(#loc0\)\n', with_lines) and "test_jit.py" in with_lines
    assert "loc(" not in lowered.as_text() and lowered.as_text().splitlines()[-1] == "}"
    assert " sine(" in lowered.as_text("hlo") and lowered.as_text("hlo").startswith("HloModule f")
    with raises(ValueError, "as_text: the dialect must be 'stablehlo' or 'hlo', not 'mhlo'."):
        lowered.as_text("mhlo")


def test_modules_as_objects_of_jaxlib():
    lowered = tl.jit(f).lower(X, X)
    assert " sine(" in lowered.compiler_ir("hlo").as_hlo_text()
    assert "stablehlo.sine" in str(lowered.compiler_ir()) and lowered.compiler_ir().operation.verify()
    with raises(ValueError, "compiler_ir: the dialect must be 'stablehlo' or 'hlo', not 'mhlo'."):
        lowered.compiler_ir("mhlo")


def test_modules_for_other_platforms():
    traced = tl.jit(lambda x: lax.platform_dependent(x, cpu=tnp.sin, cuda=tnp.cos)).trace(X)
    texts = [traced.lower(lowering_platforms=[name]).as_text() for name in ("cpu", "cuda")]
    assert [("stablehlo.sine" in text, "stablehlo.cosine" in text) for text in texts] == [(True, False), (False, True)]
    with raises(ValueError, f"compile: the module is for gpu, and the default device is {tl.devices()[0]}."):
        traced.lower(lowering_platforms=("cuda",)).compile()
    for wrong in ((), ("cpu", "cuda"), ("no",)):
        with raises(ValueError, f"lower: lowering_platforms must be one of cpu, gpu, cuda, tpu, not {wrong}."):
            traced.lower(lowering_platforms=wrong)


def test_stages():
    traced = tl.jit(f).trace(X, X)
    assert str(traced.jaxpr) == (
        "{ lambda a:f64[2] b:f64[2]. let\n    c:f64[2] = sin a\n    d:f64[2] = mul c b\n  in d }"
    )
    assert traced.out_info == tl.ShapeDtypeStruct((2,), np.float64)
    lowered = traced.lower(lowering_platforms=(tl.default_backend(),))
    assert lowered.out_info == traced.out_info
    assert "stablehlo.sine" in lowered.as_text() and "module @f" in lowered.as_text()
    assert lowered.cost_analysis()["flops"] == 2.0
    compiled = lowered.compile()
    close(compiled(X, X), np.sin(X) * X)
    assert compiled.out_info == traced.out_info and compiled.runtime_executable().local_devices()
    assert (traced.fun_name, tl.tree.leaves(traced.out_avals)) == ("f", [*traced.jaxpr.out_avals])
    for stage in (traced, lowered, compiled):
        assert (stage.in_tree, stage.out_tree) == (traced.in_tree, traced.out_tree)
        assert tl.tree.leaves(stage.in_avals) == [*traced.jaxpr.in_avals]
        assert stage.donate_argnums == ()
    assert tl.jit(f, donate_argnums=(1,)).lower(X, X).donate_argnums == (1,)
    assert compiled.as_text().startswith("HloModule f")
    assert compiled.cost_analysis()["flops"] == 2.0
    memory = compiled.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.temp_size_in_bytes) == (32, 16, 0)
    assert isinstance(compiled.serialize(), bytes)


def test_args_info():
    f = tl.jit(lambda x, y: x + y["n"], donate_argnums=0)
    lowered = f.lower(np.float32(1), {"n": 2})
    for stage in (f.trace(np.float32(1), {"n": 2}), lowered, lowered.compile()):
        (x, y), kwargs = stage.args_info
        assert (x.shape, x.dtype, x.donated, y["n"].donated, kwargs) == ((), np.float32, True, False, {})
        assert isinstance(x, tl.stages.ArgInfo)
    assert tl.stages.CompilerOptions == dict[str, str | bool]


def test_stages_need_types_only():
    spec = tl.ShapeDtypeStruct((2,), "float64")
    close(tl.jit(f).lower(spec, spec).compile()(X, X), np.sin(X) * X)
    assert tl.jit(f).eval_shape(spec, y=spec) == spec


def test_stages_with_static_arguments():
    lowered = tl.jit(lambda x, n: x**n, static_argnums=1).lower(X, 3)
    close(lowered.compile()(X), X**3)


def test_lines_of_the_program_are_the_users():
    text = tl.jit(f).lower(X, X).as_text(debug_info=True)
    line = place(f, "tnp.sin").split(" ")[0].split(":")[1]
    assert f'test_jit.py":{line}:0' in text, text


STRUCTURE = f"{place(f)} was compiled for arguments (float64[2], float64[2]), but called with"


@pytest.mark.parametrize(
    "args, kwargs, message",
    [
        ((np.ones(3), X), {}, f"{place(f)} was compiled for float64[2] as argument x, but called with float64[3]."),
        (
            (np.ones(3), X[0]),
            {},
            f"{place(f)} was compiled for float64[2] as argument x, but called with float64[3].\n"
            "  y was float64[2], but is float64[].",
        ),
        (
            (X, X.astype(np.float32)),
            {},
            f"{place(f)} was compiled for float64[2] as argument y, but called with float32[2].",
        ),
        (
            (X, X.astype(np.int64)),
            {},
            f"{place(f)} was compiled for float64[2] as argument y, but called with int64[2].",
        ),
        (
            (X, "abc"),
            {},
            f"{place(f)} was compiled for float64[2] as argument y, which is 'abc' of type str, which is not an array.",
        ),
        ((X,), {}, f"{STRUCTURE} (float64[2])."),
        ((X, "abc", X), {}, f"{STRUCTURE} (float64[2], 'abc', float64[2])."),
        ((X,), {"y": X}, f"{STRUCTURE} (float64[2], y=float64[2])."),
    ],
)
def test_compiled_for_other_types(args, kwargs, message):
    compiled = tl.jit(f).lower(X, X).compile()
    with raises(TypeError, message):
        compiled(*args, **kwargs)


def test_stages_print_what_they_are_of():
    def loss(params, x, *, rate):
        return {"loss": params["w"] * x, "rate": rate}

    traced = tl.jit(loss).trace({"w": X}, tnp.ones(2), rate=0.5)
    signature = "loss({'w': float64[2]}, float32[2], rate=float32[]) -> {'loss': float64[2], 'rate': float32[]}"
    assert repr(traced) == f"<Traced {signature}>"
    assert repr(traced.lower()) == f"<Lowered {signature}>"
    assert repr(traced.lower().compile()) == f"<Compiled {signature} for {tl.devices()[0]}>"
    many = repr(tl.jit(lambda *xs: xs[0]).trace(*[X] * 99))
    assert len(many) < 500 and many.endswith("...) -> float64[2]>")


def test_compiled_takes_weak_and_strong_alike():
    compiled = tl.jit(lambda x: x * x).lower(1.0).compile()
    close([compiled(3.0), compiled(np.float32(3)), compiled(np.array(3, np.float32))], [9, 9, 9])


def test_a_wide_integer_does_not_give_way():
    x = tnp.array([1, 2], np.int32)
    out = tl.jit(lambda x, n: x + n)(x, np.int64(2**40))
    assert out.dtype == np.int64 and out.tolist() == [2**40 + 1, 2**40 + 2]


def test_gradients_of_numbers_are_weak():
    assert tl.grad(lambda b: (tnp.ones(3) + b).sum())(1.0).weak_type


def test_devices_by_other_names():
    """Shardings of one device, and platforms, are ways to name it; None names none."""
    cpu = tl.devices("cpu")[0]
    place = tl.sharding.SingleDeviceSharding(cpu)
    f = tl.jit(lambda x, y: x + y, in_shardings=(None, place), out_shardings={"x": None}, backend="cpu", device=cpu)
    assert f(1.0, 2.0) == 3 and f(1.0, 2.0).device is cpu
    assert tl.jit(in_shardings=None)(lambda x: x)(1.0) == 1
    with raises(TypeError, "jit: the device must be one of tl.devices(), not 'x'."):
        tl.jit(lambda x: x, out_shardings=["x"])
    with pytest.raises(RuntimeError):
        tl.jit(lambda x: x, backend="nothing")
