"""Functions of functions: custom rules that are right by construction, derivatives inside programs, named axes."""

from tests.fuzzing.builder import Builder
from tests.fuzzing.families.loops import close, inside
from tests.fuzzing.program import Block, Var


def function(b: Builder, operands: list[Var], stem: str, closed: bool = False) -> tuple[Block, Var, bool]:
    """A nested function of these, its result, and whether it has a reverse mode."""
    before = b.session.forward_only
    b.session.forward_only = False
    try:
        params = [b.param(v) for v in operands]
        child = inside(b, params, closed)
        y = child.last()
        reverse = not b.session.forward_only
    finally:
        b.session.forward_only |= before
    return child.block(stem, ", ".join(p.name for p in params), "", "{0}", [y]), y, reverse


def custom(b: Builder) -> None:
    operands = [b.pick("f"), *([b.pick("f")] if b.chance(0.4) else [])]
    block, y, reverse = function(b, operands, "raw", closed=True)
    rule = b.session.name("rule")
    forms = [f"{rule} = tl.custom_jvp({{b0}})\n{rule}.defjvp(lambda p, t: tl.jvp({{b0}}, p, t))"]
    if reverse:
        again = "lambda p, c: tl.vjp({b0}, *p)[1](c)"
        forms += [f"{rule} = tl.custom_vjp({{b0}})\n{rule}.defvjp(lambda *p: ({{b0}}(*p), p), {again})"]
        forms += [f"{rule} = tl.custom_vjp({{b0}})\n{rule}.defvjp(lambda *p: tl.vjp({{b0}}, *p), lambda r, c: r(c))"]
    mapped = "lambda n, m, *p: (tl.vmap({b0}, in_axes=[0 if k else None for k in m])(*p), True)"
    forms += [f"{rule} = tl.custom_batching.custom_vmap({{b0}})\n{rule}.def_vmap({mapped})"]
    form = b.choice(forms)
    call = ", ".join(f"{{{k}}}" for k in range(len(operands)))
    out = Var(b.session.name("v"), y.shape, y.dtype, y.bound)
    close(
        b,
        form.split(" = ")[1].split("(")[0],
        f"{form}\n{{o0}} = {rule}({call})",
        (out,),
        operands,
        block,
    )


def derivative(b: Builder) -> None:
    x = b.pick("f", most=2, where=lambda v: v.size <= 6)
    block, y, reverse = function(b, [x], "inner")
    shape = x.shape
    texts = [
        ("tl.jvp({b0}, ({0},), (tnp.ones_like({0}),))[1]", y.shape),
        ("tl.linearize({b0}, {0})[1](tnp.cos({0}))", y.shape),
    ]
    if y.size <= 6:
        texts.append(("tl.jacfwd({b0})({0})", (*y.shape, *shape)))
    if reverse:
        texts += [
            ("tl.grad(lambda z: tnp.sum({b0}(z)))({0})", shape),
            ("tl.vjp({b0}, {0})[1](tnp.ones_like({b0}({0})))[0]", shape),
        ]
        texts += [("tl.checkpoint(tl.grad(lambda z: tnp.sum(tnp.sin({b0}(z)))))({0})", shape)]
        texts += [("tl.value_and_grad(lambda z: tnp.sum({b0}(z)))({0})[1]", shape)]
        if y.size <= 6:
            texts.append(("tl.jacrev({b0})({0})", (*y.shape, *shape)))
    text, out_shape = b.choice(texts)
    if y.dtype != x.dtype:  # a derivative has the dtype of the result or of the argument
        text, out_shape = texts[0]
    dtype = x.dtype if out_shape == shape and text not in (texts[0][0], texts[1][0]) else y.dtype
    out = Var(b.session.name("v"), out_shape, dtype, 8.0)
    close(b, text.split("(")[0], f"{{o0}} = .2 * {text}", (out,), [x], block)
    b.session.forward_only |= not reverse and "jacfwd" not in text


def associative(b: Builder) -> None:
    x = b.pick("f", least=1)
    y = b.pick("f", shape=x.shape)
    more = b.choice(("", ", reverse=True", f", axis={b.integer(0, x.ndim - 1)}"))
    recurrence = "lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1])"
    texts = (
        f"lax.associative_scan(tnp.add, {{0}}{more})", f"lax.associative_scan(tnp.multiply, tnp.sin({{0}}){more})",
        f"lax.associative_scan({recurrence}, (tnp.sin({{0}}), {{1}}){more})[1]",
        f"lax.associative_scan(tnp.maximum, {{0}}{more})",
    )  # fmt: skip
    b.emit(b.choice(texts), x, y, bound=(x.bound + y.bound) * max(max(x.shape, default=1), 1))


def named_axes(b: Builder) -> None:
    x = b.pick("f", least=1, full=True)
    axis = b.integer(0, x.ndim - 1)
    inner = b.choice((
        "r - lax.pmean(r, 'i')", "r * lax.psum(tnp.sin(r), 'i')", "r + lax.axis_index('i')", "lax.pmax(r, 'i') - r",
        "lax.all_gather(r, 'i').sum(0) * r", "tnp.cos(r) / lax.axis_size('i')",
    ))  # fmt: skip
    text = f"tl.vmap(lambda r: {inner}, in_axes={axis}, out_axes={b.choice((0, axis))}, axis_name='i')({{0}})"
    b.emit(text, x, bound=x.bound * (2 + x.shape[axis]), feature="vmap." + inner.split("(")[0].split(" ")[-1])


def drawn(b: Builder) -> None:
    """Random numbers of a fixed key, which JAX has the same of; and a function on the host."""
    x = b.pick("f", least=1, where=lambda v: v.dtype in ("float64", "float32"))
    draw = b.choice(
        ("normal({}, {0}.shape, {0}.dtype)", "uniform({}, {0}.shape, {0}.dtype)", "randint({}, {0}.shape, 0, 5)")
    )
    key = b.choice((f"tl.random.key({b.integer(0, 9)})", f"tl.random.fold_in(tl.random.key(1), {b.integer(0, 9)})"))
    texts = (
        "{0} * tl.random." + draw.replace("{}", key), "tl.random.permutation(" + key + ", {0})",
        "tnp.where(tl.random.bernoulli(" + key + ", .5, {0}.shape), {0}, 0.)",
        "{0} + tl.pure_callback(np.tanh, tl.ShapeDtypeStruct({0}.shape, {0}.dtype), lax.stop_gradient({0}), "
        "vmap_method='sequential')",
    )  # fmt: skip
    b.emit(b.choice(texts), x, bound=5 * x.bound)


def markers(b: Builder) -> None:
    """What has no effect on values: names, barriers, constants, copies."""
    x = b.pick("f")
    texts = (
        "tl.ad_checkpoint.checkpoint_name({0}, 'kept')", "lax.optimization_barrier({0})", "tnp.array({0})",
        "tl.checkpoint(lambda z: tnp.sin(tl.ad_checkpoint.checkpoint_name(tnp.sin(z), 'kept')), "
        "policy=tl.checkpoint_policies.save_only_these_names('kept'))({0})", "tnp.asarray({0}).astype({0}.dtype)",
        "tl.jit(lambda z, w: z * w, static_argnums=1)({0}, 2)", "tl.jit(tnp.cos)({0})",
        "tl.vmap(tnp.sin)({0}[None])[0]",
    )  # fmt: skip
    b.emit(b.choice(texts), x, bound=2 * x.bound)


FAMILIES = {
    "custom": custom,
    "derivative": derivative,
    "associative": associative,
    "named_axes": named_axes,
    "markers": markers,
    "drawn": drawn,
}
