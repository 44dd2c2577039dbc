"""Index rows of contractions and convolutions: sums of products, over the window in a convolution."""

from collections.abc import Sequence

from tapeless.interpreters.index_rows import Box, IndexRow, Params, rows, terms
from tapeless.interpreters.rows.windows import window_index
from tapeless.tracer.primitives import contraction as c
from tapeless.tracer.primitives.windows import count
from tapeless.tracer.terms.affine import Affine
from tapeless.tracer.terms.term import Bracket, Read
from tapeless.tracer.types import ShapedArray


def _dot_general(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    """Make the row of dot_general: the result has the batch axes, then the free axes of the left and the right."""
    ((cx, cy), (bx, by)), (x, y), box = params["dimension_numbers"], avals, Box()
    of_x, of_y = dict[int, Affine](), dict[int, Affine]()
    for d, e in zip((*bx, *cx), (*by, *cy)):
        of_x[d] = of_y[e] = box.axis(x.shape[d])
    out = [of_x[d] for d in bx]
    for aval, indices in ((x, of_x), (y, of_y)):
        for d in range(aval.ndim):
            if d not in indices:
                indices[d] = box.axis(aval.shape[d])
                out.append(indices[d])
    return terms([box.term(out, Read(0, _in_order(of_x)), Read(1, _in_order(of_y)))])


def _in_order(indices: dict[int, Affine]) -> tuple[Affine, ...]:
    return tuple([indices[d] for d in range(len(indices))])


def _conv_general_dilated(params: Params, avals: Sequence[ShapedArray]) -> IndexRow:
    """Make the row of a convolution.

    The group is a digit of the batch or the features of the left, and of the features of the right and of the result.
    """
    (x, y), p, (lhs, rhs, out) = avals, params, params["dimension_numbers"]
    batches, features = p["batch_group_count"], p["feature_group_count"]
    sizes = x.shape[lhs[0]] // batches, batches * features, y.shape[rhs[0]] // (batches * features), y.shape[rhs[1]]
    box, brackets = Box(), list[Bracket]()
    n, group, o, i = box.axes(sizes)
    of_x = {lhs[0]: n + sizes[0] * group if batches > 1 else n, lhs[1]: i + sizes[3] * group if features > 1 else i}
    of_y = {rhs[0]: o + sizes[2] * group, rhs[1]: i}
    of_out = {out[0]: n, out[1]: o + sizes[2] * group}
    dilations = zip(p["window_strides"], p["padding"], p["lhs_dilation"], p["rhs_dilation"])
    for d, e, to, (stride, padding, base, dilation) in zip(lhs[2:], rhs[2:], out[2:], dilations):
        shape = x.shape[d], y.shape[e]
        of_out[to], of_y[e] = box.axes((count(*shape, stride, padding, base, dilation), shape[1]))
        place = stride * of_out[to] + dilation * of_y[e] - padding[0]
        of_x[d], more = window_index(box, place, shape[0], base)
        brackets += more
    reads = Read(0, _in_order(of_x)), Read(1, _in_order(of_y))
    return terms([box.term(_in_order(of_out), *reads, brackets=brackets)])


rows[c.dot_general_p], rows[c.conv_general_dilated_p] = _dot_general, _conv_general_dilated
