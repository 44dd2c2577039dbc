"""Linear algebra of matrices that are well conditioned, whose spectra are apart, by what is added to an operand."""

from tests.fuzzing.builder import Builder, Unfit
from tests.fuzzing.program import Var
from tests.fuzzing.sizes import STEPS

REGULAR = "(.5 * {0} + 2 * tnp.eye({n}))"
POSITIVE = "(.3 * {0} @ {0}.mT + 1.5 * tnp.eye({n}))"
APART = "(.2 * ({0} + {0}.mT) + tnp.diag(2. * tnp.arange({n})))"
OF_MATRIX = (
    f"tnp.linalg.cholesky({POSITIVE})", f"tnp.linalg.inv({REGULAR})", f"tnp.linalg.det({REGULAR})",
    f"tnp.linalg.slogdet({REGULAR})[1]", f"tnp.linalg.eigvalsh({APART})", f"tnp.linalg.eigh({APART})[1] ** 2",
    f"tnp.linalg.svdvals({APART} + 1.7 * tnp.eye({{n}}))", f"tnp.linalg.qr({REGULAR})[1]",
    f"tnp.linalg.qr({REGULAR})[0]", "tnp.linalg.matrix_power({0}, 3)", f"tnp.linalg.matrix_power({REGULAR}, -1)",
    f"tnp.linalg.pinv({REGULAR})", f"lax.linalg.lu({REGULAR})[0]", "tnp.linalg.norm({0} + .1 * tnp.eye({n}))",
    f"tnp.linalg.norm({REGULAR}, 1)", "tnp.linalg.matrix_norm({0} + .1 * tnp.eye({n}))",
    "tnp.linalg.multi_dot([{0}, {0}, {0}])",
    f"tnp.linalg.cholesky({POSITIVE}).mT", f"tnp.linalg.cond({REGULAR})", "tnp.linalg.vector_norm({0} + 1.3, axis=-1)",
    "lax.linalg.cholesky(.3 * {0} @ {0}.T + 1.5 * tnp.eye({n}))",
    f"tnp.linalg.svd({APART} + 1.7 * tnp.eye({{n}}))[0] ** 2", f"tnp.linalg.tensorinv({REGULAR}, ind=1)",
)  # fmt: skip
OF_SYSTEM = (
    f"tnp.linalg.solve({REGULAR}, {{1}})", f"tnp.linalg.lstsq({REGULAR}, {{1}})[0]",
    "lax.linalg.triangular_solve(.3 * {0} + 2 * tnp.eye({n}), {1}[:, None], left_side=True, lower=True)",
    "lax.linalg.triangular_solve(.3 * {0} + 2 * tnp.eye({n}), {1}[None], lower=False, transpose_a=True)",
    "lax.linalg.triangular_solve({0}, {1}[:, None], left_side=True, unit_diagonal=True)",
    f"tnp.linalg.solve({POSITIVE}, {{1}})", f"tnp.linalg.inv({REGULAR}) @ {{1}}", f"{{1}} @ tnp.linalg.inv({REGULAR})",
)  # fmt: skip


def square(b: Builder) -> Var:
    """A matrix; not in many examples, which the oracle factors one by one."""
    if b.times > STEPS:
        raise Unfit
    x = b.find(
        lambda v: v.kind == "f" and v.ndim == 2 and v.shape[0] == v.shape[1] and v.dtype in ("float64", "float32")
    )
    n = b.size()
    return x or b.pick("f", shape=(n, n), dtype="float64")


def factorizations(b: Builder) -> None:
    x = square(b)
    b.emit(b.choice(OF_MATRIX).replace("{n}", str(x.shape[0])), x, bound=20)


def systems(b: Builder) -> None:
    x = square(b)
    y = b.pick("f", shape=x.shape[:1], dtype=x.dtype)
    b.emit(b.choice(OF_SYSTEM).replace("{n}", str(x.shape[0])), x, y, bound=4 * y.bound)


def implicit(b: Builder) -> None:
    """custom_linear_solve and custom_root."""
    x = square(b)
    y = b.pick("f", shape=x.shape[:1], dtype=x.dtype)
    a = REGULAR.replace("{n}", str(x.shape[0]))
    solve = f"lambda _, c: tnp.linalg.solve({a}, c), lambda _, c: tnp.linalg.solve({a}.T, c)"
    root = (
        "lax.custom_root(lambda z: z + .3 * tnp.sin(z) - {1}, {1}, "
        "lambda f, z: lax.fori_loop(0, 60, lambda _, z: z - f(z), z), lambda g, z: z / g(tnp.ones_like(z)))"
    )
    text = b.choice((f"lax.custom_linear_solve(lambda z: {a} @ z, {{1}}, {solve})", root))
    b.emit(text, x, y, bound=2 * y.bound)


FAMILIES = {"factorizations": factorizations, "systems": systems, "implicit": implicit}
