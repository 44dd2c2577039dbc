"""How loops are arranged that read and write one array: in which order, and what begins as what."""

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering.xla_workarounds import in_place_loops
from tapeless.tracer.jaxpr import Jaxpr

X = np.ones(8, np.float32)


def program(f, *args) -> Jaxpr:
    return tl.make_jaxpr(f)(*args).jaxpr


def names(eqns) -> list[str]:
    return [eqn.primitive.name for eqn in eqns]


def read(b, i):
    return lax.dynamic_slice(b, (i,), (1,))


def write(b, value, i):
    return lax.dynamic_update_slice(b, value, (i,))


def ordered(f, *args) -> in_place_loops.Order:
    jaxpr = program(f, *args)
    return in_place_loops.order(jaxpr, in_place_loops.find_written(jaxpr))


def test_reads_come_before_the_write():
    def f(b, v, i):
        written = write(b, v, i)
        return written, tnp.sin(read(b, i))

    eqns, waits = ordered(f, X, X[:1], 0)
    assert [name for name in names(eqns) if name.startswith("dynamic")] == ["dynamic_slice", "dynamic_update_slice"]
    assert {w.primitive.name: names(rs) for w, rs in waits.items()} == {"dynamic_update_slice": ["dynamic_slice"]}


def test_a_write_of_what_was_read_waits_for_nothing_else():
    assert ordered(lambda b, i: write(b, tnp.sin(read(b, i)), i), X, 0).waits == {}


def test_programs_without_both_stand_as_they_are():
    jaxpr = program(lambda b, v, i: (tnp.sin(v), write(b, v, i)), X, X[:1], 0)
    assert in_place_loops.order(jaxpr, in_place_loops.find_written(jaxpr)).eqns is jaxpr.eqns


def test_what_goes_in_a_circle_stands_as_it_is():
    def f(a, b, i):
        """Each array is read with what the write to the other gave."""
        new_a, new_b = write(a, X[:1], i), write(b, X[:1], i)
        return write(new_a, read(b, i) + read(new_a, i), i), write(new_b, read(a, i) + read(new_b, i), i)

    jaxpr = program(f, X, X, 0)
    eqns, _ = in_place_loops.order(jaxpr, in_place_loops.find_written(jaxpr))
    assert sorted(names(eqns)) == sorted(names(jaxpr.eqns))
    made = {*jaxpr.invars}
    for eqn in eqns:
        assert all(v in made for v in eqn.invars if v in {v for e in jaxpr.eqns for v in e.outvars})
        made.update(eqn.outvars)


def test_branches_that_update_begin_as_the_operand():
    updates = program(lambda s, b, i: (read(b, i), write(b, s, i)), X[:1], X, 0)
    leaves = program(lambda s, b, i: (s, b), X[:1], X, 0)
    other = program(lambda s, b, i: (s, b * 2), X[:1], X, 0)
    assert in_place_loops.homes([updates, leaves]) == [0, 1]
    assert in_place_loops.homes([updates, other]) == [0, 1]
    assert in_place_loops.homes([other]) == [0, None]


def test_two_results_do_not_begin_as_one_operand():
    twice = program(lambda b, i: (b, write(b, X[:1], i)), X, 0)
    assert in_place_loops.homes([twice]) == [None, None]


def test_results_are_traced_through_loops_and_calls():
    def f(b, v):
        b = lax.fori_loop(0, 3, lambda i, b: write(b, v, i), b)
        b = lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, write(c[1], v, c[0])), (0, b))[1]
        return tl.jit(lambda b: lax.cond(b[0] > 0, lambda b: write(b, v, 2), lambda b: b, b))(b)

    assert in_place_loops.homes([program(f, X, X[:1])]) == [0]


def test_carries_that_change_places_are_no_updates():
    f = lambda a, b, v: lax.fori_loop(0, 3, lambda i, c: (write(c[1], v, i), c[0]), (a, b))  # noqa: E731
    assert in_place_loops.homes([program(f, X, X, X[:1])]) == [None, None]
