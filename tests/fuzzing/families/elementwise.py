"""Functions of numbers: every row keeps to the domain where it is smooth, by what it adds to its operand."""

from tests.fuzzing.builder import Builder

# (text, bound of the result or None for that of the operand)
UNARY: tuple[tuple[str, float | None], ...] = (
    ("tnp.sin({0})", 1), ("tnp.cos({0})", 1), ("tnp.tanh({0})", 1), ("tnp.arctan({0})", 1.6), ("lax.logistic({0})", 1),
    ("tnp.exp(-{0} * {0})", 1), ("tnp.expm1(tnp.sin({0}))", 1.8), ("-{0}", None),
    ("tnp.log(1.5 + tnp.sin({0}))", 1), ("tnp.log1p({0} * {0})", 3), ("tnp.log2(2.5 + tnp.cos({0}))", 2),
    ("tnp.sqrt({0} * {0} + .3)", None), ("lax.rsqrt({0} * {0} + .5)", 1.5),
    ("tnp.sinh(tnp.sin({0}))", 1.3), ("tnp.cosh(tnp.sin({0}))", 1.6), ("tnp.arcsinh({0})", None),
    ("tnp.arccosh(2.2 + tnp.sin({0}))", 2), ("tnp.arctanh(.8 * tnp.sin({0}))", 1.2), ("tnp.tan(.6 * tnp.sin({0}))", 1),
    ("tnp.arcsin(.8 * tnp.sin({0}))", 1.2), ("tnp.arccos(.8 * tnp.cos({0}))", 2.6), ("tnp.square(tnp.sin({0}))", 1),
    ("tnp.sin({0}) ** 3", 1), ("(1.5 + tnp.cos({0})) ** -2", 4), ("(1.7 + tnp.sin({0})) ** 1.3", 3.7),
    ("1 / (1.6 + tnp.sin({0}))", 1.7), ("tnp.abs({0} - .2137)", None), ("tnp.maximum({0}, .1371)", None),
    ("tnp.minimum({0}, .2713)", None), ("tnp.clip({0}, -.4171, .6137)", 1), ("tnp.sign({0} + .1713) * {0}", None),
    ("tnp.reciprocal({0} * {0} + .7)", 1.5), ("tnp.sinc(.3 + tnp.sin({0}))", 1), ("tnp.deg2rad(40. * {0})", None),
    ("tnp.positive({0})", None),
    ("lax.integer_pow({0}, 2)", 9),
    ("lax.reduce_precision({0}, 11, 52)", None), ("tnp.nan_to_num({0})", None), ("tnp.real({0})", None),
    ("lax.stop_gradient({0}) * {0}", 9), ("tnp.heaviside({0} - .0137, .5) * {0}", None),
    ("tnp.fmod({0} + 3.137, 7.71)", 7),
    ("tnp.mod({0}, 5.171)", 5.2), ("tnp.floor(3 * {0} + .0717) * .3", None), ("tnp.round(3 * {0} + .0717) * .3", None),
    ("{0}.conj()", None), ("{0} * True", None), ("{0} + tnp.float32(.5)", None), ("2 * {0}", None),
)  # fmt: skip
SPECIAL_FUNCTIONS: tuple[tuple[str, float], ...] = (
    ("lax.erf({0})", 1),
    ("lax.erfc({0})", 2),
    ("lax.lgamma(1.5 + tnp.abs(tnp.sin({0}) + .013))", 1),
    ("lax.digamma(1.7 + tnp.sin({0}) * tnp.sin({0}))", 1),
    ("lax.erf_inv(.7 * tnp.sin({0}))", 1),
    ("lax.bessel_i1e({0})", 1),
    ("tnp.i0(tnp.sin({0}))", 1.4),
    ("lax.polygamma(1., 2.5 + tnp.sin({0}))", 1),
    ("lax.igamma(1.7, .8 + tnp.sin({0}) ** 2)", 1),
    ("lax.igammac(2.3, .8 + tnp.sin({0}) ** 2)", 1),
    ("lax.zeta(3.1, 1.8 + tnp.sin({0}))", 1.5),
    ("tnp.cbrt(2.3 + tnp.sin({0}))", 1.5),
    ("tnp.exp2(tnp.cos({0}))", 2),
    ("lax.bessel_i0e({0})", 1),
    ("lax.igamma(1.3 + tnp.sin({0}) ** 2, 1.7)", 1),
    ("lax.igammac(1.3 + tnp.sin({0}) ** 2, .7)", 1),
    ("lax.random_gamma_grad(1.7, .5 + tnp.cos(lax.stop_gradient({0})) ** 2)", 2),
    ("lax.polygamma(2., 2.5 + tnp.sin({0}))", 1),
    ("tnp.exp2(tnp.sin({0}))", 2),
    ("tnp.cbrt({0} * {0} + .7)", 2.5),
)  # fmt: skip
BINARY: tuple[tuple[str, float | None], ...] = (
    ("{0} + {1}", None), ("{0} - {1}", None), ("tnp.sin({0}) * {1}", None), ("{0} * {1}", 16),
    ("{0} / (1.3 + {1} * {1})", None), ("tnp.maximum({0}, {1} + .0713)", None), ("tnp.minimum({0}, {1} - .0317)", None),
    ("tnp.arctan2({0}, 1.7 + tnp.sin({1}))", 3.2), ("tnp.hypot({0} + 1.7, {1})", 6), ("tnp.logaddexp({0}, {1})", None),
    ("(1.5 + tnp.sin({0})) ** tnp.cos({1})", 3), ("tnp.where({0} > {1} + .0171, {0}, {1})", None),
    ("tnp.where({0} < .3171, tnp.sin({1}), {0})", None), ("tnp.copysign({0}, {1} + .0131)", None),
    ("tnp.fmax({0}, {1} - .0213)", None), ("tnp.logaddexp2({0}, {1})", None), ("{0} * ({1} > .0931)", None),
    ("tnp.select([{0} > .3137, {1} < .1173], [{0}, 2 * {1}], .5)", None),
    ("tnp.float_power(1.4 + tnp.sin({0}), {1})", 40),
    ("tnp.where(tnp.isfinite({0}), {1}, 0.)", None), ("lax.add(*tnp.broadcast_arrays({0}, {1}))", None),
    ("tnp.remainder({0} + 2.171, 3.7 + tnp.sin({1}))", 5), ("tnp.divide({0}, tnp.cosh(tnp.tanh({1})))", None),
    ("lax.clamp(-.4137, {0} * tnp.ones_like({1}), .7173)", 1), ("tnp.subtract({0}, lax.stop_gradient({1}))", None),
)  # fmt: skip
COMPLEX_UNARY: tuple[tuple[str, float | None], ...] = (
    ("tnp.real({0})", None), ("tnp.imag({0})", None), ("tnp.conj({0})", None), ("tnp.abs({0} + (2.3 + .7j))", None),
    ("tnp.exp(.5j * tnp.real({0}))", 1), ("tnp.sin(.5 * {0})", 8), ("{0} * {0}", 16), ("1 / ({0} + (5.3 + 1j))", 1),
    ("tnp.sqrt({0} + (6.3 + .5j))", 4), ("tnp.log({0} + (6.1 + .3j))", 4), ("tnp.tanh(.1 * {0})", 2),
    ("-1j * {0}", None),
    ("tnp.angle({0} + (6.5 + .2j))", 1), ("{0} ** 2", 16), ("tnp.cosh(.3 * {0})", 4),
    ("{0}.real + 2j * {0}.imag", None),
)  # fmt: skip
INTEGER: tuple[str, ...] = (
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} // (2 + tnp.abs({1} % 3))", "{0} % 5", "{0} & {1}", "{0} | {1}",
    "{0} ^ {1}", "~{0}", "tnp.maximum({0}, {1})", "tnp.minimum({0}, 3)", "tnp.abs({0})", "tnp.sign({0})",
    "tnp.where({0} > {1}, {0}, {1})", "tnp.clip({0}, 1, 4)", "lax.population_count({0})", "lax.clz({0})", "{0} << 1",
    "{0} >> 1", "tnp.gcd({0}, {1})", "tnp.invert({0})", "{0} ** 2", "tnp.square({0})", "-{0}", "tnp.mod({0}, -3)",
    "tnp.bitwise_count({0})", "lax.rem({0}, 1 + 0 * {0} + 2)", "tnp.floor_divide({0}, 3)", "tnp.lcm({0} % 4, {1} % 3)",
)  # fmt: skip
COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")
LOGICAL = ("{0} & {1}", "{0} | {1}", "{0} ^ {1}", "~{0}", "tnp.logical_and({0}, {1})", "tnp.logical_not({1})")


def unary(b: Builder) -> None:
    x = b.pick("f")
    text, bound = b.choice(UNARY)
    b.emit(text, x, bound=x.bound + 0.5 if bound is None else bound)


def special_functions(b: Builder) -> None:
    text, bound = b.choice(SPECIAL_FUNCTIONS)
    b.emit(text, b.pick("f"), bound=bound)


def binary(b: Builder) -> None:
    x = b.pick("f")
    y = b.pick("f", where=lambda v: broadcasts(v.shape, x.shape))
    x, y = (y, x) if b.chance(0.5) else (x, y)
    text, bound = b.choice(BINARY)
    b.emit(text, x, y, bound=x.bound + y.bound if bound is None else bound)


def complexes(b: Builder) -> None:
    if b.chance(0.5):
        x = b.pick("f")
        y = b.pick("f", where=lambda v: broadcasts(v.shape, x.shape))
        b.emit(
            b.choice(("{0} + 1j * {1}", "{0} * tnp.exp(1j * {1})", "lax.complex(*tnp.broadcast_arrays({0}, {1}))")),
            x,
            y,
        )
    z = b.pick("c")
    if b.chance(0.3):
        w = b.pick("cf", where=lambda v: broadcasts(v.shape, z.shape))
        b.emit(
            b.choice(("{0} + {1}", "{0} * tnp.conj({1})", "{0} - 2j * {1}")), z, w, bound=2 * z.bound * max(w.bound, 1)
        )
        return
    text, bound = b.choice(COMPLEX_UNARY)
    b.emit(text, z, bound=z.bound + 6 if bound is None else bound)


def integers(b: Builder) -> None:
    x = b.pick("iu")
    y = b.pick("iu", where=lambda v: broadcasts(v.shape, x.shape) and v.dtype == x.dtype)
    b.emit(b.choice(INTEGER), x, y, bound=x.bound + y.bound)


def comparisons(b: Builder) -> None:
    x = b.pick("fiub")
    if x.kind == "b":
        y = b.pick("b", where=lambda v: broadcasts(v.shape, x.shape))
        b.emit(b.choice(LOGICAL), x, y, feature="logical")
    else:
        y = b.pick(x.kind, where=lambda v: broadcasts(v.shape, x.shape))
        shift = " + .01713" if x.kind == "f" else ""
        b.emit(f"{{0}} {b.choice(COMPARISONS)} {{1}}{shift}", x, y, feature="comparison")


def masks(b: Builder) -> None:
    m = b.pick("b")
    x = b.pick("f", where=lambda v: broadcasts(v.shape, m.shape))
    y = b.pick("f", where=lambda v: broadcasts(v.shape, m.shape))
    texts = (
        "tnp.where({0}, {1}, {2})",
        "{1} * {0}",
        "tnp.where({0}, {1}, 0)",
        "tnp.where({0}, 0., {2})",
        "{1} - {0} * {2}",
    )
    b.emit(b.choice(texts), m, x, y, bound=x.bound + y.bound + 1)


def conversions(b: Builder) -> None:
    """Between kinds and widths; numbers stay in the range of what they become."""
    x = b.pick("fiub")
    if x.kind == "f":
        to = b.choice(("float32", "float64", "complex128", "int32", "int8", "int64", "bool"))
        text = f"(3 * {{0}} + .0137).astype('{to}')" if to.startswith("int") else f"{{0}}.astype('{to}')"
        text = "({0} > .0171).astype('bool')" if to == "bool" else text
        b.emit(text, x, bound=3 * x.bound + 1 if to.startswith("int") else x.bound, feature=f"astype.{to}")
    elif x.kind == "b":
        b.emit(f"{{0}}.astype('{b.choice(('int32', 'float64', 'uint8'))}')", x, bound=1, feature="astype.bool")
    else:
        to = b.choice(("int32", "int64", "int8", "uint8", "int16"))
        b.emit(f"({{0}} & 7).astype('{to}')", x, bound=7, feature=f"astype.{to}")
        b.emit(f"{b.number()} * {{0}}.astype('{b.session.float}')", b.locals[-1], bound=10, feature="astype.int")


def broadcasts(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(shape[::-1], other[::-1], strict=False))


FAMILIES = {
    "unary": unary,
    "special_functions": special_functions,
    "binary": binary,
    "complexes": complexes,
    "integers": integers,
    "comparisons": comparisons,
    "masks": masks,
    "conversions": conversions,
}
