"""Maps: composing, ordering, stacking and boxes, against NumPy's indexing."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tapeless.tracer.terms.affine import Access, Affine, variables
from tapeless.tracer.terms.evaluate import evaluate_sum, numbers
from tapeless.tracer.terms.map import Map, find_box, find_view_in_box, identity_map, make_map, make_view
from tapeless.tracer.terms.solve import solve_term, transposed


def values(m: Map, x: Any) -> Any:
    return evaluate_sum((m.term,), m.shape, [x], numbers(np.float64))


def array(shape: tuple[int, ...]) -> Any:
    return np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape)


@st.composite
def accesses(draw: st.DrawFn, of: tuple[int, ...]) -> Map:
    """Of one to three axes, each read forwards or backwards, in strides, repeatedly or at one index."""
    shape = tuple([draw(st.integers(1, 3)) for _ in range(draw(st.integers(1, 3)))])
    access: Access = ()
    for n in of:
        d = draw(st.integers(0, len(shape) - 1))
        steps = [k for k in (-2, -1, 0, 1, 2) if abs(k) * (shape[d] - 1) < n]
        step = draw(st.sampled_from(steps)) if shape[d] > 1 else 0
        reach = abs(step) * (shape[d] - 1)
        start = draw(st.integers(0, n - 1 - reach)) + (reach if step < 0 else 0)
        access += (step * variables(shape)[d] + start,)
    return make_view(access, of, shape)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_composition(data: st.DataObject):
    first = data.draw(accesses((3, 4)))
    second = data.draw(accesses(first.shape))
    both, x = first.then(second), array(first.of)
    assert both is not None and both.is_in_place
    np.testing.assert_array_equal(values(both, x), values(second, values(first, x)))
    assert identity_map(first.of).then(first) == first == first.then(identity_map(first.shape))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_what_is_written_is_read_back(data: st.DataObject):
    """A map and its transpose compose to a map that holds where the first reads."""
    m = data.draw(accesses((3, 4)))
    solution = solve_term(transposed(m.term, 0))
    assert solution is not None
    back = make_map(solution, m.shape, m.of)
    np.testing.assert_array_equal(values(back, np.ones(m.shape)) > 0, _read(m))
    both = back.then(m)
    assert both is not None
    np.testing.assert_array_equal(values(both, np.ones(m.shape)) > 0, np.ones(m.shape))


def _read(m: Map) -> Any:
    found = np.zeros(m.of, bool)
    found[tuple(np.broadcast_arrays(*[_grid(a, m.shape) for a in m.access]))] = True
    return found


def _grid(a: Affine, shape: tuple[int, ...]) -> Any:
    axes = np.indices(shape)
    return a.constant + sum([c * axes[v] for v, c in a.variables], np.zeros(shape, int))


@settings(deadline=None, max_examples=60)
@given(st.data(), st.integers(1, 3))
def test_order_stacks_and_boxes(data: st.DataObject, n: int):
    m, other = data.draw(accesses((3, 4))), data.draw(accesses((3, 4)))
    x = array(m.of)
    part, order = m.in_order()
    axes = [part.shape[order.index(d)] if d in order else 1 for d in range(len(m.shape))]
    turned = np.transpose(values(part, x), np.argsort(order)).reshape(axes)
    np.testing.assert_array_equal(np.broadcast_to(turned, m.shape), values(m, x))
    every = m.stacked(n)
    np.testing.assert_array_equal(values(every, array((n, 3, 4))), [values(m, y) for y in array((n, 3, 4))])
    assert n == 1 or every.of_each() == m
    box = find_box([(each.access, each.shape) for each in (m, other)], m.of)
    for each in (m, other):
        np.testing.assert_array_equal(values(find_view_in_box(each, box), values(box, x)), values(each, x))


def test_nothing_is_read():
    first = make_map(transposed(make_view((Affine(1),), (3,), ()).term, 0), (), (3,))  # which writes element 1 alone
    assert first.then(make_view((Affine(2),), (3,), ())) is None
    assert first.then(make_view((Affine(1),), (3,), ())) == identity_map(())
