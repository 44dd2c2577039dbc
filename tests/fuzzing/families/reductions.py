"""Reductions, cumulative operations, windows, sorting: over one axis, several or all."""

import math

from tests.fuzzing.builder import Builder
from tests.fuzzing.families.shaping import axis_of
from tests.fuzzing.sizes import WORK, summed

# texts of (operand, keywords); the bound as a function of the operand's bound and the elements reduced
SUMS = (
    "tnp.sum",
    "tnp.mean",
    "tnp.max",
    "tnp.min",
    "tnp.var",
    "tnp.std",
    "tnp.prod",
    "tnp.ptp",
    "tnp.nansum",
    "tnp.amax",
)
CUMULATIVE = (
    "tnp.cumsum",
    "tnp.cumprod",
    "lax.cummax",
    "lax.cummin",
    "lax.cumlogsumexp",
    "lax.cumsum",
    "lax.cumprod",
    "tnp.nancumsum",
)
JITTER = "({0} + tnp.linspace(.013, .471, {0}.size).reshape({0}.shape))"  # no ties


def reductions(b: Builder) -> None:
    x = b.pick("f", full=True)
    axes = tuple(int(a) for a in sorted(b.rng.permutation(x.ndim)[: b.integer(0, x.ndim)]))
    axis = b.choice((None, axes, axes[0] if axes else None, axes))
    name = b.choice(SUMS)
    operand = JITTER if name in ("tnp.max", "tnp.min", "tnp.ptp", "tnp.std", "tnp.amax") else "{0}"
    more = ", keepdims=True" if b.chance(0.3) else ""
    if name == "tnp.prod":
        operand = "tnp.sin({0})"
    if name in ("tnp.sum", "tnp.mean") and b.chance(0.3):
        more += f", where={{0}} > {b.number(-0.5, 0.5)}"
    more = more if "mean" not in name else more.split(", where")[0]
    if name == "tnp.ptp" and axis == ():
        axis = None
    terms = math.prod(x.shape[a] for a in axes) if b.session.extent.is_large and axis is not None else x.size
    b.emit(f"{name}({operand}, axis={axis}{more})", x, bound=x.bound * (summed(terms) if "sum" in name else 2) + 1)


def cumulative(b: Builder) -> None:
    x = b.pick("f", least=1)
    name, axis = b.choice(CUMULATIVE), b.integer(0, x.ndim - 1)
    operand = "tnp.sin({0})" if "prod" in name else "{0}"
    reverse = ", reverse=True" if name.startswith("lax") and b.chance(0.5) else ""
    grown = x.bound + 12 if "log" in name else x.bound * max(summed(x.shape[axis]), 1)
    b.emit(f"{name}({operand}, axis={axis}{reverse})", x, bound=grown)


def of_integers(b: Builder) -> None:
    """Indices and counts, which have no derivative."""
    if b.chance(0.5):
        x = b.pick("f", least=1, full=True)
        axis = axis_of(b, x)
        name = b.choice(("tnp.argmax", "tnp.argmin", "tnp.argsort"))
        b.emit(f"{name}({JITTER}, axis={axis})", x, bound=x.size)
    else:
        x = b.pick("iub", full=True)
        names = ("tnp.sum", "tnp.max", "tnp.prod", "tnp.any", "tnp.all", "tnp.count_nonzero", "tnp.cumsum", "tnp.sort")
        name = b.choice(names)
        axis = "" if x.ndim == 0 or b.chance(0.3) else f", axis={axis_of(b, x)}"
        if x.ndim == 0 and name in ("tnp.cumsum", "tnp.sort"):
            name = "tnp.sum"
        operand = "{0}.astype('int32')" if name in ("tnp.max", "tnp.sort") and x.kind == "b" else "{0}"
        b.emit(f"{name}({operand}{axis})", x, bound=x.bound * x.size)


def sorting(b: Builder) -> None:
    x = b.pick("f", least=1, full=True)
    axis = axis_of(b, x)
    k = b.integer(1, x.shape[-1])
    q = b.choice((0.1, 0.37, 0.5, 0.9, [0.2, 0.7]))
    texts = (
        f"tnp.sort({JITTER}, axis={axis})", f"lax.top_k({JITTER}, {k})[0]", f"tnp.median({JITTER}, axis={axis})",
        f"tnp.quantile({JITTER}, np.array({q}), axis={axis})", f"lax.sort({JITTER}, dimension={axis % x.ndim})",
        f"tnp.take_along_axis({{0}}, tnp.argsort({JITTER}, axis={axis}), {axis})",
        f"tnp.partition({JITTER}, {k - 1})[..., {k - 1}]",
        f"lax.sort(({JITTER}, tnp.sin({{0}})), num_keys=1)[1]",
    )  # fmt: skip
    b.emit(b.choice(texts), x, bound=x.bound + 0.5)


def calculus(b: Builder) -> None:
    x = b.pick("f", least=1, where=lambda v: v.ndim > 0 and min(v.shape) > 1)
    axis = axis_of(b, x)
    texts = (
        f"tnp.diff({{0}}, axis={axis})", f"tnp.gradient({{0}}, axis={axis})",
        f"tnp.trapezoid({{0}}, dx=.3, axis={axis})",
        "tnp.ediff1d({0})", "tnp.polyval({0}, tnp.linspace(-.8, .9, 3))", "tnp.average({0}, weights=.1 + {0} * {0})",
        f"tnp.interp({b.number()} * tnp.sin({{0}}), tnp.linspace(-1.37, 1.71, 5), tnp.array([.3, -.2, .8, .1, -.6]))",
        "tnp.cov({0})", f"tnp.unwrap({{0}}, axis={axis})", "tnp.cross({0}[..., :2], tnp.sin({0}[..., :2]))",
        f"tnp.linalg.norm({{0}}, axis={axis})",
    )  # fmt: skip
    b.emit(b.choice(texts), x, bound=4 * x.bound)


def windows(b: Builder) -> None:
    x = b.pick("f", least=1, full=True)
    window = within(tuple(b.integer(1, min(3, n)) for n in x.shape), WORK // x.size)
    strides = tuple(b.integer(1, 2) for _ in x.shape)
    padding = b.choice(("'VALID'", "'SAME'", tuple((b.integer(0, 1), b.integer(0, 1)) for _ in x.shape)))
    name, operand = b.choice(
        (("lax.add", "{0}"), ("lax.max", JITTER), ("lax.min", JITTER), ("lax.mul", "tnp.sin({0})"))
    )
    more = ""
    if name != "lax.mul" and b.session.extent.is_large and b.chance(0.5):
        which = b.choice(("base_dilation", "window_dilation"))
        more = f", {which}={tuple(b.integer(1, 2) for _ in x.shape)}"
    init = {"lax.add": "0.", "lax.mul": "1.", "lax.max": "-np.inf", "lax.min": "np.inf"}[name]
    text = (
        f"lax.reduce_window({operand}, np.array({init}, '{x.dtype}')[()], {name}, {window}, {strides}, {padding}{more})"
    )
    if name in ("lax.max", "lax.min"):  # windows of padding alone are infinite
        text = f"tnp.clip({text}, -9., 9.)"
    b.emit(text, x, bound=9 * x.bound, feature=f"lax.reduce_window.{name[4:]}")


def within(window: tuple[int, ...], most: int) -> tuple[int, ...]:
    """A window cut along its first axes until it has at most so many elements."""
    cut = list(window)
    for d in range(len(cut)):
        if math.prod(cut) > most:
            cut[d] = 1
    return tuple(cut)


FAMILIES = {
    "reductions": reductions,
    "cumulative": cumulative,
    "of_integers": of_integers,
    "sorting": sorting,
    "calculus": calculus,
    "windows": windows,
}
