"""Products that sum: dot_general, einsum, matmul and its kin, convolutions."""

from tests.fuzzing.builder import Builder, Unfit
from tests.fuzzing.program import Var
from tests.fuzzing.sizes import summed

EINSUMS = (
    "ij,jk->ik", "ij,kj->ik", "ij,ij->i", "ij,ij->ij", "ii,i->i", "ii->i", "ij->ji", "ij->", "i,j->ij", "i,i->",
    "ij,j->i",
    "i,j,k->kji", "ij,jk,kl->il", "i,ij,j->", "ijk,k->ij", "ijk,ikl->ijl", "ij,ik->jk", "ii,jj->ij", "bij,bjk->bik",
    "ij,i->j",
    "ii->", "i,i,i->i", "ij,ji->", "ij,jj->i", "ijk->kj", "...i,i->...", "...i,...i->...", "pi,qi,pq->i",
)  # fmt: skip


def einsum(b: Builder) -> None:
    spec = b.choice(EINSUMS)
    sizes: dict[str, int] = {}
    operands: list[Var] = []
    for labels in spec.split("->")[0].split(","):
        operands.append(labelled(b, labels.replace("...", "A"), sizes))
    holes = ", ".join(f"{{{i}}}" for i in range(len(operands)))
    bound = 4.0 * max(v.bound for v in operands) ** len(operands)
    b.emit(f"tnp.einsum('{spec}', {holes})", *operands, bound=bound)


def labelled(b: Builder, labels: str, sizes: dict[str, int]) -> Var:
    """An operand whose axes have the sizes that their labels have; labels that are new take them on."""

    def fits(v: Var) -> bool:
        seen = dict(sizes)
        return v.ndim == len(labels) and all(seen.setdefault(c, n) == n for c, n in zip(labels, v.shape))

    shape = [sizes.get(c) or sizes.setdefault(c, b.size()) for c in labels] if b.chance(0.2) else None
    v = b.find(lambda v: v.kind == "f" and fits(v)) if shape is None else None
    if v is None:
        shape = [sizes[c] if c in sizes else sizes.setdefault(c, b.size()) for c in labels]
        v = b.pick("f", shape=shape)
    sizes.update(zip(labels, v.shape))
    return v


def products(b: Builder) -> None:
    x = b.pick("ffffc", least=1, most=3)
    axis = x.ndim - 1
    y = b.pick("ffffc", least=1, most=3, where=lambda v: v.kind == x.kind and x.shape[axis] in v.shape)
    j = y.shape.index(x.shape[axis])
    dims = f"((({axis},), ({j},)), ((), ()))"
    same = [k for k in range(min(x.ndim, y.ndim)) if x.shape[k] == y.shape[k] and k not in (axis, j)]
    if same and b.chance(0.5):
        dims = f"((({axis},), ({j},)), (({same[0]},), ({same[0]},)))"
    texts = [f"tnp.tensordot({{0}}, {{1}}, (({axis},), ({j},)))"]
    if x.dtype == y.dtype:
        texts += [f"lax.dot_general({{0}}, {{1}}, {dims})"] * 3
    if j == max(y.ndim - 2, 0):
        texts += ["{0} @ {1}", "tnp.dot({0}, {1})"] if y.ndim < 3 and x.ndim < 3 else []
    if x.ndim == y.ndim == 2 and x.shape[0] == y.shape[0]:
        texts += ["{0}.T @ {1}", "({0}.T @ {1})[0]", "tnp.sum({0}.T @ {1}, 0)", "tnp.trace({0}.T @ {1})"]
    if x.shape == y.shape:
        texts += ["tnp.vecdot({0}, {1})", "tnp.inner({0}, {1})", "tnp.vdot({0}, {1})"]
    b.emit(b.choice(texts), x, y, bound=max(5, summed(x.shape[axis])) * x.bound * y.bound)


def convolutions(b: Builder) -> None:
    """Two spatial axes or one, with strides, dilations, groups and paddings of every sign."""
    spatial = b.integer(1, 2)
    groups = b.choice((1, 1, 1, 2))
    channels, features, batch = groups * b.integer(1, 2), groups * b.integer(1, 2), b.integer(1, 2)
    space = [b.integer(2, 4) for _ in range(spatial)]
    if b.session.extent.is_large and b.chance(0.5):
        space[0] = b.session.extent.long
    x = b.pick("f", shape=(batch, channels, *space), dtype=b.session.float)
    w = b.pick(
        "f", shape=(features, channels // groups, *(b.integer(1, 3) for _ in range(spatial))), dtype=b.session.float
    )
    strides = tuple(b.integer(1, 2) for _ in range(spatial))
    padding = b.choice(("'SAME'", "'VALID'", [(b.integer(0, 2), b.integer(0, 2)) for _ in range(spatial)]))
    more = f", rhs_dilation={tuple(b.integer(1, 2) for _ in range(spatial))}" if b.chance(0.3) else ""
    if not isinstance(padding, str) and b.chance(0.5):
        more += f", lhs_dilation={tuple(b.integer(1, 2) for _ in range(spatial))}"
    more += f", feature_group_count={groups}" if groups > 1 else ""
    text = f"lax.conv_general_dilated({{0}}, {{1}}, {strides}, {padding}{more})"
    out = b.emit(text, x, w, bound=9 * x.bound * w.bound)
    if out.size == 0 and b.chance(0.9):
        raise Unfit


FAMILIES = {"einsum": einsum, "products": products, "convolutions": convolutions}
