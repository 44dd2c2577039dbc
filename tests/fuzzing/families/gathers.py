"""lax.gather and lax.scatter with dimension numbers drawn at random, every mode, indices in and out of range."""

from tests.fuzzing.builder import Builder, Unfit
from tests.fuzzing.program import Var
from tests.fuzzing.sizes import summed


class Drawn:
    """Which axes of x an index vector addresses, how large its window is, which axes of the window are dropped."""

    def __init__(self, b: Builder, x: Var) -> None:
        self.indexed = sorted(int(a) for a in b.rng.permutation(x.ndim)[: b.integer(1, x.ndim)])
        self.sizes = [b.integer(1, n) if a in self.indexed else n for a, n in enumerate(x.shape)]
        self.dropped = [a for a in self.indexed if self.sizes[a] == 1 and b.chance(0.7)]
        self.kept = [n for a, n in enumerate(self.sizes) if a not in self.dropped]

    def vector(self, b: Builder) -> str:
        """Index vectors made of one array of integers."""
        parts = [b.choice(("{1}", "{1} + 1", "{1} % 3", "0 * {1}")) for _ in self.indexed]
        return f"tnp.stack([{', '.join(parts)}], -1)"


MODES = ("clip", "clip", "promise_in_bounds", "fill")


def gathers(b: Builder) -> None:
    x = b.pick("ffc", least=1, most=3, full=True)
    i = b.pick("i", most=2)
    d = Drawn(b, x)
    offset = tuple(range(i.ndim, i.ndim + len(d.kept))) if b.chance(0.7) else tuple(range(len(d.kept)))
    numbers = (
        f"lax.GatherDimensionNumbers(offset_dims={offset}, collapsed_slice_dims={tuple(d.dropped)}, "
        f"start_index_map={tuple(d.indexed)})"
    )
    mode = b.choice(MODES)
    vector = d.vector(b) if mode != "promise_in_bounds" else f"tnp.stack([0 * {{1}}] * {len(d.indexed)}, -1)"
    fill = ", fill_value=.5" if mode == "fill" else ""
    text = f"lax.gather({{0}}, {vector}, {numbers}, slice_sizes={tuple(d.sizes)}, mode='{mode}'{fill})"
    b.emit(text, x, i, bound=x.bound + 0.5, feature=f"lax.gather.{mode}")


def scatters(b: Builder) -> None:
    x = b.pick("f", least=1, most=3, full=True)
    i = b.pick("i", most=1)
    v = b.pick("f", most=0, dtype=x.dtype)
    d = Drawn(b, x)
    shape = (*i.shape, *d.kept)
    size = 1
    for n in shape:
        size *= n
    if size == 0:
        raise Unfit
    window = tuple(range(i.ndim, i.ndim + len(d.kept)))
    numbers = (
        f"lax.ScatterDimensionNumbers(update_window_dims={window}, inserted_window_dims={tuple(d.dropped)}, "
        f"scatter_dims_to_operand_dims={tuple(d.indexed)})"
    )
    updates = f"tnp.linspace(.31, .87, {size}).reshape({shape}).astype('{x.dtype}') * {{2}}"
    how = b.choice(("scatter_add", "scatter_add", "scatter_sub", "scatter_min", "scatter_max"))
    mode = b.choice(("clip", "drop"))
    text = f"lax.{how}({{0}}, {d.vector(b)}, {updates}, {numbers}, mode='{mode}')"
    b.emit(text, x, i, v, bound=x.bound + v.bound * max(summed(i.size), 1), feature=f"lax.{how}.{mode}")


FAMILIES = {"gathers": gathers, "scatters": scatters}
