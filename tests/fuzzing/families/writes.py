"""Writes into buffers: `.at[..]` in every way and mode, dynamic_update_slice, segment sums."""

from tests.fuzzing.builder import Builder
from tests.fuzzing.families.indexing import start
from tests.fuzzing.program import Var
from tests.fuzzing.sizes import summed

HOW = ("set", "set", "add", "add", "multiply", "min", "max", "subtract")
MODES = ("", "", ", mode='drop'", ", mode='clip'", ", mode='promise_in_bounds'")


def value_for(b: Builder, shape: tuple[int, ...], dtype: str) -> Var:
    """Something of this shape, or that broadcasts to it."""
    found = b.find(lambda v: v.dtype == dtype and v.shape in (shape, ()))
    return found or b.pick("f" if dtype.startswith(("f", "b")) else "i", shape=(), dtype=dtype)


def element(b: Builder) -> None:
    """At one traced place along the first axis or the last."""
    x = b.pick("f", least=1, full=True)
    i, last = start(b), b.chance(0.3)
    v = value_for(b, x.shape[:-1] if last else x.shape[1:], x.dtype)
    how = b.choice(HOW)
    place = b.choice(("{1}", "{1}", "{1} % {0}.shape[0]", "-1", "0")) if not last else b.choice(("..., {1}", "..., -1"))
    modes = MODES[:-1]
    text = f"{{0}}.at[{place}].{how}({_separate(how, x)}{b.choice(modes)})"
    b.emit(text, x, i, v, bound=_grown(how, x, v), feature=f"at.{how}")


def _separate(how: str, x: Var) -> str:
    """The value; away from ties with what is there."""
    return "1.31 * {2} + .0317" if how in ("min", "max") else "{2}"


def _grown(how: str, x: Var, v: Var) -> float:
    return {"add": x.bound + 3 * v.bound, "subtract": x.bound + 3 * v.bound, "multiply": x.bound * max(v.bound, 1)}.get(
        how, max(x.bound, 1.4 * v.bound + 0.1)
    )


def static_part(b: Builder) -> None:
    x = b.pick("f", least=1, full=True)
    n = x.shape[0]
    part = b.choice(
        (
            ":",
            "::2",
            "::-1",
            "1:",
            ":-1",
            "..., 0",
            f"[{b.integer(-n, n - 1)}, {b.integer(-n, n - 1)}]",
            str(b.integer(-n, n - 1)),
        )
    )
    how = b.choice(("set", "add", "multiply"))
    if part.startswith("["):  # of two writes to one place, either may win; a product there has no derivative
        how = "add"
    v = b.pick("f", shape=(), dtype=x.dtype)
    b.emit(f"{{0}}.at[{part}].{how}({{1}})", x, v, bound=_grown(how, x, v), feature=f"at.{how}.static")


def window(b: Builder) -> None:
    x = b.pick("ffc", least=1, full=True)
    u = b.find(
        lambda v: (
            v.dtype == x.dtype and v.ndim == x.ndim and v.size > 0 and all(m <= n for m, n in zip(v.shape, x.shape))
        )
    )
    u = u or x
    i = start(b)
    starts = ", ".join(b.choice(("0", "{2}", "1", "{2}")) for _ in x.shape)
    texts = [f"lax.dynamic_update_slice({{0}}, {{1}}, ({starts},))"] * 3
    if u.shape[1:] == x.shape[1:]:
        texts.append("lax.dynamic_update_slice_in_dim({0}, {1}, {2}, 0)")
    texts.append(f"lax.dynamic_update_index_in_dim({{0}}, {{0}}[0], {{2}}, {0})")
    b.emit(b.choice(texts), x, u, i, bound=max(x.bound, u.bound))


def scattered(b: Builder) -> None:
    """At several places, some of them twice: sums and products, whose order does not matter."""
    x = b.pick("f", least=1, full=True)
    i = b.pick("i", least=1, most=1)
    v = value_for(b, (*i.shape, *x.shape[1:]), x.dtype)
    how = b.choice(("add", "add", "subtract", "multiply", "min", "max"))
    place = b.choice(("{1}", "tnp.abs({1}) % {0}.shape[0]", "{1} % 2"))
    value = "1.31 * {2} + .0317" if how in ("min", "max") else "{2}"
    if how == "multiply":  # has no derivative in what is multiplied by where a place is named twice
        value = str(b.number())
    b.emit(
        f"{{0}}.at[{place}].{how}({value}{b.choice(MODES[:-1])})",
        x,
        i,
        v,
        bound=_many(how, x, v, i),
        feature=f"at.{how}.many",
    )


def _many(how: str, x: Var, v: Var, i: Var) -> float:
    if how == "multiply":
        return x.bound * max(v.bound, 1) ** min(i.size, 100)
    return x.bound + summed(i.size) * v.bound * 1.4 + 0.1


FAMILIES = {"element": element, "static_part": static_part, "window": window, "scattered": scattered}
