"""Reads of parts: static slices, traced starts in and out of range, fancy indices, gathers in every mode."""

from tests.fuzzing.builder import Builder
from tests.fuzzing.program import Var
from tests.fuzzing.sizes import summed


def static_index(b: Builder, n: int) -> str:
    """One axis of a NumPy index: an int, a slice with any step, None or an ellipsis are added around."""
    if n == 0 or b.chance(0.4):
        start, stop = b.choice(("", b.integer(-n - 1, n))), b.choice(("", b.integer(-n - 1, n + 1)))
        return f"{start}:{stop}:{b.choice(('', '', -1, 2, -2))}"
    if b.chance(0.2):
        return str([b.integer(-n, n - 1) for _ in range(b.integer(1, 3))])
    return str(b.integer(-n, n - 1)) if b.chance(0.5) else ":"


def static(b: Builder) -> None:
    x = b.pick("fffci", least=1)
    parts = [static_index(b, n) for n in x.shape[: b.integer(1, x.ndim)]]
    if b.chance(0.2):
        parts.insert(b.integer(0, len(parts)), "None")
    if b.chance(0.15):
        parts.append("...")
    b.emit(f"{{0}}[{', '.join(parts)}]", x, bound=x.bound, feature="index.static")


def start(b: Builder) -> Var:
    """A traced integer, which may well be out of range."""
    return b.pick("iiiu", ndim=0)


def dynamic(b: Builder) -> None:
    x = b.pick("fffci", least=1, full=True)
    i = start(b)
    axis = b.integer(0, x.ndim - 1)
    width = b.integer(1, x.shape[axis])
    starts = ", ".join("{1}" if k == axis else b.choice(("0", "1", "{1}")) for k in range(x.ndim))
    sizes = tuple(width if k == axis else b.choice((n, max(n - 1, 1))) for k, n in enumerate(x.shape))
    mode = b.choice(("'clip'", "'fill', fill_value=.5", "'fill', fill_value=0"))
    take = b.choice(("'clip'", "'wrap'", "'fill', fill_value=0."))
    texts = (
        f"lax.dynamic_slice({{0}}, ({starts},), {sizes})", f"lax.dynamic_slice_in_dim({{0}}, {{1}}, {width}, {axis})",
        f"lax.dynamic_index_in_dim({{0}}, {{1}}, {axis}, keepdims={b.chance(0.5)})", "{0}[{1}]", "{0}[..., {1}]",
        f"lax.dynamic_slice({{0}}, ({starts},), {sizes})", "{0}[{1} % {0}.shape[0]]",
        "{0}[1:][{1}]" if x.shape[0] > 1 else "{0}[{1}]",
        f"{{0}}.at[{{1}}].get(mode={mode})", f"tnp.take({{0}}, {{1}}, {axis}, mode={take})",
    )  # fmt: skip
    b.emit(b.choice(texts), x, i, bound=x.bound + 0.5)


def twice(b: Builder) -> None:
    """A part of a part: two reads that a compiler would like to merge."""
    x = b.pick("f", least=1, full=True)
    i, j = start(b), start(b)
    n = x.shape[0]
    wide = b.integer(1, n)
    narrow = b.integer(1, wide)
    inner = b.choice(
        (f"lax.dynamic_slice_in_dim({{0}}, {{1}}, {wide})", f"{{0}}[{n - wide}:]", "tnp.roll({0}, {1}, 0)")
    )
    function = b.choice(("{}", "tnp.sin({})", "tnp.cumsum({}, 0)", ".5 * {}"))
    outer = b.choice(
        ("{}[{2}]", f"lax.dynamic_slice_in_dim({{}}, {{2}}, {narrow})", "{}[-1]", "tnp.flip({}, 0)[{2}]", "{}[::2]")
    )
    text = outer.replace("{}", function.replace("{}", inner))
    b.emit(text, x, i, j, bound=x.bound * (summed(n) if "cumsum" in text else 1), feature="index.twice")


def fancy(b: Builder) -> None:
    x = b.pick("fffc", least=1, full=True)
    i = b.pick("iiiu", least=1, most=2)
    n = x.shape[0]
    texts = [
        "{0}[{1}]", "{0}[tnp.abs({1}) % {0}.shape[0]]", "tnp.take({0}, {1}, 0, mode='clip')",
        "{0}.at[{1}].get(mode='clip')",
        "{0}[..., {1}]", f"{{0}}[np.array({[b.integer(-n, n - 1) for _ in range(b.integer(1, 4))]})]",
        "tnp.take({0}, {1}, 0, mode='wrap')", "{0}.at[{1}].get(mode='fill', fill_value=0)",
        "tnp.take({0}, {1}, mode='clip')",
        f"{{0}}[{b.listed(lambda: b.chance(0.6), n)}]",
        f"tnp.compress({b.listed(lambda: b.chance(0.6), n)}, {{0}}, 0)",
    ]  # fmt: skip
    if x.ndim > 1:
        texts += [
            "{0}[{1}, {1}]",
            "{0}[:, {1}]",
            "{0}[{1}[..., None], tnp.arange({0}.shape[1])]",
            "{0}[{1}, 0]",
            "{0}[{1}, ..., ::-1]",
        ]
        texts += [
            "tnp.take_along_axis({0}, tnp.argsort({0} + 1.7 * tnp.sin(3 * {0}), 0), 0)" if x.kind == "f" else "{0}[{1}]"
        ]
    b.emit(b.choice(texts), x, i, bound=x.bound + 0.5, feature="index.fancy")


def one_hots(b: Builder) -> None:
    """Reads written as products with masks of positions."""
    x = b.pick("f", least=1, full=True)
    i = start(b)
    n = x.shape[0]
    mask = f"(tnp.arange({n}) == {{1}})"
    column = f"{mask}.reshape({(n,) + (1,) * (x.ndim - 1)})"
    texts = (
        f"tnp.sum({{0}} * {column}, 0)", f"{mask}.astype({{0}}.dtype) @ {{0}}", f"tnp.where({column}, {{0}}, 0.)",
        f"tnp.cumsum(tnp.where({column}, {{0}}, 0.), 0)", f"tnp.where({column}, {{0}}, tnp.sin({{0}}))",
        f"tnp.where(tnp.arange({n}).reshape({(n,) + (1,) * (x.ndim - 1)}) == 1, tnp.cumsum({{0}}, 0), 0.)",
        f"tnp.where({column}, tnp.flip({{0}}, 0), 0.).sum(0)",
        f"(tnp.arange({n} + 2) == {{1}})[1:-1].astype({{0}}.dtype) @ {{0}}",
    )  # fmt: skip
    b.emit(b.choice(texts), x, i, bound=x.bound * summed(n), feature="index.one_hot")


FAMILIES = {"static": static, "dynamic": dynamic, "twice": twice, "fancy": fancy, "one_hots": one_hots}
