"""checkpoint: what is kept, what is computed again, and that the compiled program really does so."""

import functools
import inspect
import re
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.ad_checkpoint import checkpoint_name
from tapeless.tracer.jaxpr import Jaxpr, subjaxprs
from tests.api.comparing import assert_same
from tests.close import fused_single_precision as close
from tests.messages import place

pytestmark = pytest.mark.usefixtures("eager_by_steps")

P = tl.checkpoint_policies
RNG = np.random.default_rng(0)
W = RNG.normal(size=(4, 4)).astype(np.float32)
X = RNG.normal(size=(3, 4)).astype(np.float32)


def layer(w, x):
    return tnp.tanh(x @ w)


def net(w, x, wrap: Any = lambda f: f):
    for _ in range(3):
        x = wrap(layer)(w, x)
    return tnp.sum(x * x)


def equations(jaxpr: Any, name: str = "") -> int:
    """How many equations there are, of a primitive if it is named, each program counted wherever it is called."""
    program: Jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    inside = sum(equations(inner, name) for eqn in program.eqns for inner in subjaxprs(eqn.params))
    return inside + sum(str(eqn.primitive) == name if name else True for eqn in program.eqns)


# ---- the ways to write it ------------------------------------------------------------------------------------


def test_it_computes_what_the_function_computes():
    assert_same(tl.checkpoint(layer)(W, X), tl.jit(layer)(W, X))
    assert_same(tl.remat(layer)(W, x=X), tl.jit(layer)(W, X))


def test_decorators():
    @tl.checkpoint
    def bare(x):
        """Doc."""
        return tnp.sin(x)

    @tl.checkpoint(policy=P.dots_saveable, prevent_cse=False)
    def with_arguments(x):
        return tnp.sin(x)

    assert bare.__name__ == "bare" and bare.__doc__ == "Doc."
    close(tl.grad(bare)(0.5), np.cos(0.5))
    close(tl.grad(with_arguments)(0.5), np.cos(0.5))


def test_methods():
    class Model:
        w = 2.0

        @functools.partial(tl.checkpoint, static_argnums=0)
        def __call__(self, x):
            return self.w * x

    assert float(tl.grad(Model())(3.0)) == 2.0


def test_pytrees_and_keywords():
    @tl.checkpoint
    def f(params, *, scale):
        return {"y": (params["w"] * scale, None)}

    out = f({"w": tnp.ones(2)}, scale=3.0)
    assert out["y"][1] is None
    assert_same(out["y"][0], np.full(2, 3, np.float32))
    found = tl.grad(lambda p: tnp.sum(f(p, scale=3.0)["y"][0]))({"w": tnp.ones(2)})
    assert_same(found["w"], np.full(2, 3, np.float32))


def test_static_arguments():
    @functools.partial(tl.checkpoint, static_argnums=(1,), static_argnames="how")
    def f(x, double, how="sin"):
        y = tnp.sin(x) if how == "sin" else tnp.cos(x)
        return 2 * y if double else y

    close(tl.grad(f)(0.5, True), 2 * np.cos(0.5))
    close(tl.grad(f)(0.5, False, how="cos"), -np.sin(0.5))
    close(tl.grad(lambda x: f(x, double=False))(0.5), np.cos(0.5))


def test_closures_over_arrays_are_read_at_every_call():
    scale = tnp.float32(2.0)
    f = tl.checkpoint(lambda x: x * scale)
    assert float(tl.grad(f)(1.0)) == 2.0
    scale = tnp.float32(3.0)
    assert float(tl.grad(f)(1.0)) == 3.0


def test_closures_over_traced_values_are_differentiated():
    def f(w, x):
        return tnp.sum(tl.checkpoint(lambda x: tnp.sin(x @ w))(x))

    def plain(w, x):
        return tnp.sum(tnp.sin(x @ w))

    close(tl.grad(f, (0, 1))(W, X), tl.grad(plain, (0, 1))(W, X))
    close(tl.jit(tl.grad(f, (0, 1)))(W, X), tl.grad(plain, (0, 1))(W, X))


def test_it_is_traced_once_for_the_same_types():
    traced = []

    @tl.checkpoint
    def f(x):
        traced.append(x)
        return tnp.sin(x)

    for x in (1.0, 2.0):
        f(x)
        tl.grad(f)(x)
    assert len(traced) == 1


def test_signature_is_that_of_jax():
    jax = pytest.importorskip("jax")
    theirs = inspect.signature(jax.checkpoint).parameters
    ours = inspect.signature(tl.checkpoint).parameters
    assert [*ours] == [name for name in theirs if name != "concrete"]  # removed in JAX 0.10
    assert [p.kind for p in ours.values()] == [p.kind for name, p in theirs.items() if name != "concrete"]
    assert set(vars(jax.checkpoint_policies)) <= set(P.__all__)


# ---- with the other transforms -------------------------------------------------------------------------------

POLICIES = {
    "none": None,
    "dots": P.dots_saveable,
    "everything": P.everything_saveable,
    "names": P.save_only_these_names("h"),
}
each_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


@each_policy
@pytest.mark.parametrize("jit", [False, True])
def test_gradient(policy, jit):
    wrapped = functools.partial(net, wrap=lambda f: tl.checkpoint(f, policy=policy))
    found = tl.grad(tl.jit(wrapped) if jit else wrapped, (0, 1))(W, X)
    close(found, tl.grad(net, (0, 1))(W, X))


TRANSFORMS = {
    "jvp": lambda f: lambda w, x: tl.jvp(f, (w, x), (w, x)),
    "linearize": lambda f: lambda w, x: tl.linearize(f, w, x)[1](w, x),
    "vmap of grad": lambda f: lambda w, x: tl.vmap(tl.grad(f), (None, 0))(w, tnp.stack([x, 2 * x])),
    "grad of vmap": lambda f: tl.grad(lambda w, x: tnp.sum(tl.vmap(f, (None, 0))(w, tnp.stack([x, 2 * x])))),
    "jit of grad of jit": lambda f: tl.jit(tl.grad(tl.jit(f))),
    "grad of grad": lambda f: tl.grad(lambda w, x: tnp.sum(tl.grad(f)(w, x) ** 2)),
    "jvp of grad": lambda f: lambda w, x: tl.jvp(lambda w: tl.grad(f)(w, x), (w,), (w,)),
    "grad of jvp": lambda f: tl.grad(lambda w, x: tl.jvp(lambda w: f(w, x), (w,), (w,))[1]),
    "hessian": lambda f: lambda w, x: tl.hessian(lambda s: f(s * w, x))(2.0),
    "third derivative": lambda f: lambda w, x: tl.grad(tl.grad(tl.grad(lambda s: f(s * w, x))))(0.3),
    "checkpoint": lambda f: tl.grad(tl.checkpoint(f)),
    "nested checkpoints": lambda f: tl.grad(tl.checkpoint(lambda w, x: f(w, tl.checkpoint(layer)(w, x)))),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms(transform):
    plain = transform(net)(W, X)
    close(transform(functools.partial(net, wrap=tl.checkpoint))(W, X), plain)
    dots = functools.partial(net, wrap=lambda f: tl.checkpoint(f, policy=P.dots_saveable))
    close(tl.jit(transform(dots))(W, X), plain)


def test_custom_jvp_inside():
    @tl.custom_jvp
    def f(x):
        return tnp.sin(x)

    @f.defjvp
    def f_jvp(primals, tangents):
        return f(primals[0]), 3.0 * tangents[0] * tnp.cos(primals[0])

    for policy in POLICIES.values():
        close(tl.grad(tl.checkpoint(lambda x: f(f(x)), policy=policy))(0.3), 9 * np.cos(0.3) * np.cos(np.sin(0.3)))


def test_integers_have_no_tangents():
    f = tl.checkpoint(lambda n, x: x * n)
    _, pulled = tl.vjp(f, 3, 2.0)[1](1.0)
    assert float(pulled) == 3.0
    assert float(tl.jvp(lambda x: f(3, x), (2.0,), (1.0,))[1]) == 3.0


def test_linear_transpose():
    f = tl.checkpoint(lambda x: checkpoint_name(3.0 * x, "y"))
    assert float(tl.linear_transpose(f, 1.0)(2.0)[0]) == 6.0


def test_long_programs():
    """Deeper than Python's recursion limit."""

    @tl.checkpoint
    def f(x):
        for _ in range(1500):
            x = tnp.sin(x)
        return x

    assert len(tl.saved_residuals(f, 1.0)) == 1


# ---- what is kept --------------------------------------------------------------------------------------------


def four_steps(x, policy=None, named=False):
    """LO12: four times x <- sin(x) * x."""

    def f(x):
        for _ in range(4):
            x = checkpoint_name(x, "x") if named else x
            x = tnp.sin(x) * x
        return x

    return tl.checkpoint(f, policy=policy)(x)


@pytest.mark.parametrize(
    ("policy", "arrays"),
    [
        (P.save_none, 1),
        (P.save_names("x"), 4),
        (P.save_all, 12),
        (P.save_dots, 1),
        (P.save_if(lambda *_, **__: False), 1),
    ],
    ids=["save_none", "save_names", "save_all", "save_dots", "save_if"],
)
def test_tape_of_four_steps(policy, arrays):
    f = functools.partial(four_steps, policy=policy, named=True)
    kept = tl.saved_residuals(f, 0.7)
    assert len(kept) <= 12 if arrays == 12 else len(kept) == arrays
    np.testing.assert_allclose(tl.grad(f)(0.7), tl.grad(lambda x: four_steps(x, P.save_all))(0.7), rtol=1e-6)
    backward = next(
        eqn.params["jaxpr"]
        for eqn in tl.make_jaxpr(tl.grad(f))(0.7).eqns
        if str(eqn.primitive) == "checkpoint" and any(v.linear for v in eqn.params["jaxpr"].invars)
    )
    assert kept.recomputed == sum(not eqn.linear for eqn in backward.eqns)


def test_a_value_is_saved_under_its_name_whoever_reads_it():
    """The derivative of tanh reads its result, not the name given to it: it is the same array."""

    def f(x):
        y = checkpoint_name(tnp.tanh(x), "y")
        return tnp.sin(y)

    kept = tl.saved_residuals(tl.checkpoint(f, policy=P.save_names("y")), 0.5)
    assert [x.name for x in kept] == ["y"]
    close(tl.grad(tl.checkpoint(f, policy=P.save_names("y")))(0.5), tl.grad(f)(0.5))


def test_excluded_names_are_not_saved_by_what_they_name():
    def f(x):
        y = checkpoint_name(tnp.exp(x), "big")
        return tnp.sin(y) * tnp.cos(x)

    policy = P.save_anything_except_these_names("big")
    kept = tl.saved_residuals(tl.checkpoint(f, policy=policy), 0.5)
    assert not {"name", "exp"} & {x.primitive for x in kept}
    assert "exp" in {x.primitive for x in tl.saved_residuals(tl.checkpoint(f, policy=P.save_all), 0.5)}
    close(tl.grad(tl.checkpoint(f, policy=policy))(0.5), tl.grad(f)(0.5))


def test_any_names_but_these_and_both():
    def f(x):
        for name in "abc":
            x = tnp.sin(checkpoint_name(x * 2.0, name))
        return x

    def names(policy):
        return [x.name for x in tl.saved_residuals(tl.checkpoint(f, policy=policy), 0.5) if x.name]

    assert names(P.save_any_names_but_these("b")) == ["a", "c"]
    assert names(P.save_from_both_policies(P.save_names("a"), P.save_names("b"))) == ["a", "b"]
    assert names(P.save_from_both_policies(P.nothing_saveable, P.save_names("c"))) == ["c"]


def test_dots_inside_of_jitted_functions_are_saved():
    def f(w, x):
        return tnp.sum(tl.jit(layer)(w, tl.jit(layer)(w, x)))

    def dots(policy):
        return equations(tl.make_jaxpr(tl.value_and_grad(tl.checkpoint(f, policy=policy)))(W, X), "dot_general")

    plain = equations(tl.make_jaxpr(tl.value_and_grad(f))(W, X), "dot_general")
    assert (dots(P.dots_saveable), dots(None)) == (plain, plain + 2)
    kept = tl.saved_residuals(tl.checkpoint(f, policy=P.dots_saveable), W, X)
    assert [x.primitive for x in kept].count("dot_general") == 2
    close(tl.grad(tl.checkpoint(f, policy=P.dots_saveable), (0, 1))(W, X), tl.grad(f, (0, 1))(W, X))


def test_dots_with_batch_axes(rng: np.random.Generator):
    def f(w, x):
        y = tnp.sin(x @ w)
        return tnp.sum(tnp.sin(tnp.einsum("bij,bjk->bik", y, y)))

    x = rng.normal(size=(2, 4, 4)).astype(np.float32)
    counts = {
        policy: [r.primitive for r in tl.saved_residuals(tl.checkpoint(f, policy=policy), W, x)].count("dot_general")
        for policy in (P.dots_saveable, P.dots_with_no_batch_dims_saveable)
    }
    assert counts == {P.dots_saveable: 2, P.dots_with_no_batch_dims_saveable: 1}


def test_policies_written_for_jax():
    """By name, by JAX's params, by the operands' types."""
    asked = []

    def policy(prim, *avals, **params):
        asked.append((prim.name, [a.shape for a in avals]))
        return prim.name == "dot_general" and params["dimension_numbers"][0] == ((1,), (0,))

    kept = tl.saved_residuals(tl.checkpoint(layer, policy=policy), W, X)
    assert ("dot_general", [(3, 4), (4, 4)]) in asked
    assert [x.primitive for x in kept] == [None, None, "dot_general"]


def test_random_policies_give_the_same_gradient():
    @tl.custom_jvp
    def soft(x):
        return tnp.logaddexp(x, 0.0)

    soft.defjvps(lambda t, y, x: t * tl.lax.logistic(x))

    def f(w, x):
        y = tl.jit(lambda x: checkpoint_name(tl.jit(layer)(w, x) * x, "y"))(x)
        y, ys = lax.scan(lambda h, a: (tnp.sin(h @ w) + a, soft(checkpoint_name(h * a, "z"))), y, tnp.stack([x, y, x]))
        y = lax.cond(tnp.sum(y) > 0, lambda y: tnp.sin(y @ w), lambda y: tnp.cos(y) * y, y)
        return tnp.sum(y * tl.checkpoint(layer)(w, y)) + tnp.sum(ys**2)

    plain = tl.grad(f, (0, 1))(W, X)
    for seed in range(3):
        chance = np.random.default_rng(seed)
        policy = lambda *_, **__: bool(chance.random() < 0.5)  # noqa: B023, E731  # asked before the next seed
        close(tl.grad(tl.checkpoint(f, policy=policy), (0, 1))(W, X), plain)


def test_what_is_saved_prints():
    def f(params, x):
        h = checkpoint_name(tnp.sin(params["w"] * x), "h")
        return tnp.sum(tnp.sin(h * W[0]))

    kept = tl.saved_residuals(tl.checkpoint(f, policy=P.save_names("h")), {"w": X}, 2.0)
    lines = str(kept).splitlines()
    line = inspect.getsourcelines(f)[1] + 1
    assert lines[:2] == ["float32[4] a constant", "float32[3,4] the argument params['w']"]
    assert lines[3].startswith("float32[3,4] 'h', saved by save_only_these_names('h') at ")
    assert f"test_checkpoint.py:{line} (test_what_is_saved_prints.<locals>.f), h = checkpoint_name(" in lines[3]
    assert lines[4] == f"4 arrays of {16 + 48 + 4 + 48} bytes; {kept.recomputed} operations computed again"
    assert kept.nbytes == 116


def test_saved_residuals_without_checkpoints(capsys):
    tl.print_saved_residuals(lambda *xs, k: tnp.sin(xs[0]) * xs[1] * k, 1.0, 2.0, k=3.0)
    lines = capsys.readouterr().out.splitlines()
    assert "float32[] the argument xs[1]" in lines and "float32[] the argument k" in lines
    made = [line.split(" at ")[0] for line in lines if "from" in line]
    assert made == ["3 × float32[] from cos, sin, mul"]
    assert lines[-1] == "5 arrays of 20 bytes; 0 operations computed again"
    assert len(tl.saved_residuals(layer, tl.ShapeDtypeStruct((4, 4), "float32"), X)) == 3


def test_residuals_of_a_loop_are_printed_in_groups(capsys):
    def body(c, a):
        c = tnp.sin(c) * tnp.cos(c)
        return c * a, None

    f = lambda c, xs: tl.lax.scan(body, c, xs)[0]  # noqa: E731
    arrays = tnp.ones(3), tnp.ones((5, 3))
    tl.print_saved_residuals(f, *arrays)
    *lines, total = capsys.readouterr().out.splitlines()
    kept = tl.saved_residuals(f, *arrays)
    counts = [int(line.split(" × ")[0]) if " × " in line else 1 for line in lines]
    assert sum(counts) == len(kept) == 5 and len(lines) == 2, lines
    assert total == str(kept).splitlines()[-1]


# ---- what is compiled ----------------------------------------------------------------------------------------

LAYERS, ROWS, COLUMNS = 16, 512, 128
ACTIVATION = ROWS * COLUMNS * 4


def deep(ws, x, every, **how):
    def block(x, *ws):
        for w in ws:
            x = tnp.tanh(x @ w)
        return x

    run = tl.checkpoint(block, **how) if every else block
    for i in range(0, LAYERS, every or LAYERS):
        x = run(x, *ws[i : i + (every or LAYERS)])
    return tnp.sum(x)


def compiled(every, **how):
    """Activations alive, matrix products, and gradients of the 16 layers, with a checkpoint around so many of them."""
    chance = np.random.default_rng(0)
    ws = [chance.normal(size=(COLUMNS, COLUMNS)).astype(np.float32) / 12 for _ in range(LAYERS)]
    x = chance.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    program = tl.jit(tl.grad(functools.partial(deep, every=every, **how))).lower(ws, x).compile()
    alive = program.memory_analysis().temp_size_in_bytes / ACTIVATION
    return alive, len(re.findall(r" dot\(|__cublas", program.as_text())), program(ws, x)


def test_checkpoints_save_memory_in_unrolled_code(optimized):
    """Of a loop-free program on the CPU, where XLA would merge the second computation with the first.

    For a GPU, XLA (jaxlib 0.11.2, H200) splits sums of products, and keeps all parts: of each activation five copies.
    """
    plain, dots, gradient = compiled(None)
    alive, more_dots, same = compiled(4)
    assert alive <= 0.6 * plain
    assert (plain <= 33 and alive <= 17) or tl.default_backend() != "cpu"
    assert (dots, more_dots) == (47, 59)  # the last block's forward pass is not computed twice: only its gradient is
    assert_same(same, gradient)


def test_without_prevent_cse_the_compiler_may_merge(optimized):
    plain, dots, _ = compiled(None)
    alive, same_dots, _ = compiled(4, prevent_cse=False)
    assert same_dots == dots and alive == pytest.approx(plain, abs=1)


def test_saving_dots_computes_none_again(optimized):
    _, dots, gradient = compiled(4, policy=P.dots_saveable)
    assert dots == 47
    close(gradient, compiled(None)[2])


def recurrent(w, h, xs, policy, wrap=tl.checkpoint):
    def run(w, h, xs):
        return lax.scan(lambda h, x: (tnp.tanh(h @ w) * x, tnp.sin(h)), h, xs)

    h, ys = wrap(run, policy=policy)(w, h, xs)
    return tnp.sum(h) + tnp.sum(ys)


@pytest.mark.parametrize(("policy", "dots"), [(P.everything_saveable, 3), (P.dots_saveable, 3), (None, 4)])
def test_policies_look_inside_scan(policy, dots, rng: np.random.Generator):
    """One product forwards, two backwards; the second pass, if it is needed, does not redo what is saved."""
    xs = rng.normal(size=(5, 3, 4)).astype(np.float32)
    value_and_grad = tl.value_and_grad(functools.partial(recurrent, policy=policy), (0, 1, 2))
    assert equations(tl.make_jaxpr(value_and_grad)(W, X, xs), "dot_general") == dots
    plain = tl.value_and_grad(functools.partial(recurrent, policy=None, wrap=lambda f, policy: f), (0, 1, 2))
    close(value_and_grad(W, X, xs), plain(W, X, xs))


@pytest.mark.parametrize(("policy", "again"), [(P.everything_saveable, 0), (P.dots_saveable, 0), (None, 2)])
def test_policies_look_inside_cond(policy, again):
    def f(w, x, wrap):
        run = wrap(lambda w, x: lax.cond(x[0, 0] > 0, layer, lambda w, x: tnp.sin(tnp.cos(x) @ w) * x, w, x))
        return tnp.sum(run(w, x) ** 2)

    for x in (X, -X):
        plain = tl.value_and_grad(functools.partial(f, wrap=lambda f: f), (0, 1))
        kept = tl.value_and_grad(functools.partial(f, wrap=functools.partial(tl.checkpoint, policy=policy)), (0, 1))
        close(kept(W, x), plain(W, x))
        counts = [equations(tl.make_jaxpr(program)(W, x), "dot_general") for program in (plain, kept)]
        assert counts[1] - counts[0] == again


def test_names_inside_scan_are_stacked():
    def f(h, xs):
        return lax.scan(lambda h, x: (checkpoint_name(tnp.sin(h * x), "h"), None), h, xs)[0]

    kept = tl.saved_residuals(tl.checkpoint(f, policy=P.save_names("h")), 1.0, tnp.ones(5))
    assert [(str(x.aval), x.name) for x in kept if x.name] == [("float32[5]", "h")]
    close(tl.grad(tl.checkpoint(f, policy=P.save_names("h")))(1.0, tnp.ones(5)), tl.grad(f)(1.0, tnp.ones(5)))


def test_a_checkpointed_body_keeps_the_carry(rng: np.random.Generator):
    def f(w, h, xs):
        step = tl.checkpoint(lambda h, x: (tnp.tanh(tnp.sin(h @ w) * x), None))
        return tnp.sum(lax.scan(step, h, xs)[0])

    xs = rng.normal(size=(5, 3, 4)).astype(np.float32)
    kept = tl.saved_residuals(f, W, X, xs)
    assert sorted(str(x.aval) for x in kept) == ["float32[4,4]", "float32[5,3,4]", "float32[5,3,4]"]


def test_cotangents_of_reads_inside_a_loop_accumulate_in_place():
    """Every step adds one element to the running cotangent; none makes an array of zeros."""
    step = tl.checkpoint(lambda h, i, x: tnp.sin(h * x[i]))

    def f(x):
        return lax.scan(lambda h, i: (step(h, i, x), None), 1.0, tnp.arange(7))[0]

    program = tl.make_jaxpr(tl.grad(f))(tnp.ones(7)).jaxpr
    backward = [eqn for eqn in program.eqns if str(eqn.primitive) == "scan"][1].params["jaxpr"]
    assert equations(backward, "dynamic_update_slice") == 1
    assert equations(backward, "broadcast_in_dim") == 0
    close(tl.grad(f)(tnp.ones(7)), tl.grad(lambda x: f(x * 1.0))(tnp.ones(7)))


def test_effects_happen_once(capsys):
    done = []

    @tl.checkpoint
    def f(x):
        tl.debug.print("x = {}", x)
        scale = tl.io_callback(lambda x: done.append(x) or np.float32(2), np.float32(0), tl.stop_gradient(x))
        return tnp.sin(x * scale)

    close(tl.jit(tl.grad(f))(tnp.float32(0.5)), 2 * np.cos(np.float32(1.0)))
    tl.effects_barrier()
    assert len(done) == 1 and capsys.readouterr().out == "x = 0.5\n"


# ---- the barrier ---------------------------------------------------------------------------------------------


def test_optimization_barrier():
    x = {"a": 1.0, "b": (tnp.arange(3), np.ones((2, 2)))}
    assert_same(lax.optimization_barrier(x), x)
    assert_same(tl.jit(lax.optimization_barrier)(x), x)
    assert lax.optimization_barrier(()) == ()
    text = tl.jit(lax.optimization_barrier).lower(x).as_text()
    assert text.count("stablehlo.optimization_barrier") == 1
    f = lambda x, y: lax.optimization_barrier((x * y, x))[0]  # noqa: E731
    assert_same(tl.grad(f, (0, 1))(2.0, 3.0), (3.0, 2.0))
    assert_same(tl.vmap(f)(tnp.arange(3.0), tnp.ones(3)), np.arange(3, dtype=np.float32))


# ---- errors --------------------------------------------------------------------------------------------------


def g(x, flag=None):
    return x if x > 0 or flag else "negative"


def message(raised: Any) -> str:
    return str(raised.value)


def test_errors_of_the_decorator():
    with pytest.raises(TypeError, match=r"^checkpoint: expected a function, not 3\.$"):
        tl.checkpoint(3)
    with pytest.raises(TypeError) as raised:
        tl.checkpoint(g, policy="dots")
    assert message(raised) == (
        "checkpoint: the policy must be a function of operations, not 'dots'. tl.checkpoint_policies has some."
    )
    with pytest.raises(TypeError) as raised:
        tl.checkpoint(g, prevent_cse=(True, "w"))
    assert message(raised) == (
        "checkpoint: prevent_cse must be True or False, or a sequence of such for arguments, not (True, 'w')."
    )
    with pytest.raises(ValueError, match=r"^checkpoint: the full tree does not match prevent_cse\."):
        tl.checkpoint(g, prevent_cse=(True, False, True))(1.0, 2.0)
    with pytest.raises(ValueError, match=r"^checkpoint: static_argnums names argument 2, but g at .* has 2 positional"):
        tl.checkpoint(g, static_argnums=2)


@pytest.mark.parametrize("flags, tied", [(({"w": False, "b": True}, False), True), ([False, False], False)])
def test_flags_of_arguments_against_merging(flags, tied):
    f = tl.checkpoint(lambda p, x: tnp.sum(tnp.tanh(tnp.tanh(x @ p["w"]) + p["b"])), prevent_cse=flags)
    params = {"w": W, "b": W[0]}
    close(tl.grad(f)(params, X)["w"], tl.grad(f.__wrapped__)(params, X)["w"])
    program = tl.make_jaxpr(tl.grad(f))(params, X)
    assert bool(equations(program, "optimization_barrier")) == tied


def test_static_arguments_need_no_hash():
    scaled = tl.checkpoint(lambda x, settings: x * settings["scale"], static_argnums=1)
    settings = {"scale": 2.0}
    gradients = []
    for scale in (2.0, 3.0):
        settings["scale"] = scale
        gradients.append(tl.grad(scaled)(1.0, settings))
    assert gradients == [2.0, 3.0]


def test_errors_of_calls():
    where = f"test_checkpoint.py:{g.__code__.co_firstlineno}"
    with pytest.raises(TypeError) as raised:
        tl.checkpoint(g)(1.0, flag="yes")
    assert message(raised).startswith("checkpoint: argument flag of g at ") and where in message(raised)
    assert message(raised).endswith(
        "is 'yes' of type str, which is not an array.\n  Make it static (static_argnums or static_argnames)."
    )
    with pytest.raises(
        TypeError, match=r"^checkpoint: the result of g at .* is 'negative' of type str, which is not an array\.\n  At "
    ):
        tl.checkpoint(g, static_argnums=0)(-1.0)
    with pytest.raises(tl.errors.TracerBoolConversionError, match="traced for checkpoint"):
        tl.checkpoint(g)(1.0)


def test_errors_of_names():
    with pytest.raises(TypeError) as raised:
        checkpoint_name(1.0, 3)
    assert message(raised) == "checkpoint_name: the name must be a string, not 3 of type int."
    with pytest.raises(TypeError) as raised:
        checkpoint_name({"a": "text"}, "h")
    assert message(raised) == "checkpoint_name 'h': 'text' of type str is not an array."
    with pytest.raises(TypeError) as raised:
        lax.optimization_barrier([None, "text"])
    assert message(raised) == "optimization_barrier: 'text' of type str is not an array."


def test_policies_print_as_they_were_written():
    assert P.save_only_these_names("a", "b").__name__ == "save_only_these_names('a', 'b')"
    assert P.save_from_both_policies(P.dots_saveable, P.save_names("a")).__name__ == (
        "save_from_both_policies(dots_saveable, save_only_these_names('a'))"
    )
    assert P.save_names("a") is P.save_only_these_names("a")  # so that programs made with one serve the other


def _dropout(key, x):
    return tnp.where(tl.random.bernoulli(key, 0.5, x.shape), 2 * x, 0)


def _with_dropout(w, x, key):
    hidden = tl.nn.gelu(x @ w)
    return tnp.sum(_dropout(key, hidden) ** 2)


def test_residuals_of_choices_name_the_functions_that_the_user_called(capsys):
    tl.print_saved_residuals(_with_dropout, W, X, tl.random.key(0))
    printed = capsys.readouterr().out
    assert "select_n" not in printed and " from lt " not in printed
    assert f"bool[3,4] from tl.random.bernoulli at {place(_dropout, 'return')}\n" in printed
    (line,) = [line for line in printed.split("\n") if place(_with_dropout, "hidden =") in line]
    assert "tl.nn.gelu" in line
    made = [(x.primitive, x.maker) for x in tl.ad_checkpoint.saved_residuals(_with_dropout, W, X, tl.random.key(0))]
    assert {"lt", "select_n"} & {primitive for primitive, _ in made} and ("lt", "tl.random.bernoulli") in made
    assert tl.ad_checkpoint.saved_residuals(tnp.sin, X)[0].maker == "cos"
