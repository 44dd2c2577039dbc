"""How many rules derivatives take: N that push forward, H that take programs apart, L that transpose. Not 2 N.

N: every primitive has one rule of forward mode. H: what carries programs, or holds values together, has one rule for
taking known from linear. L: what is linear in some operands, and so may stand in a linear jaxpr, has one rule that
transposes it, as H has too. Nothing else is known of a derivative anywhere: reverse mode has no rules of its own.
Source: Radul et al. 2023, section 1.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import tapeless as tl
from tapeless.interpreters import jvp, partial_eval, transpose
from tapeless.interpreters.analysis import linearity
from tapeless.tracer.core import Primitive, all_primitives
from tapeless.tracer.jaxpr import Jaxpr, subjaxprs
from tapeless.tracer.rules import Table
from tests import test_compositions
from tests.cost_ratios import PRIMITIVES, of_primitive
from tests.interpreters import structured_programs
from tests.interpreters.analysis.test_cost import LINEAR as rows_that_are_linear
from tests.interpreters.analysis.test_cost import NETWORKS, linear_jaxpr
from tests.samples import SAMPLES
from tests.samples.sample import Sample
from tests.test_primitives import over

HIGHER = """
jit checkpoint invertible custom_jvp custom_vjp custom_vmap cond while scan linear_solve optimization_barrier
""".split()
LINEAR = """
add sub neg mul div real imag conj complex copy convert_element_type reduce_precision name move materialize select_n
broadcast_in_dim reshape transpose rev concatenate pad slice split
dynamic_slice dynamic_update_slice gather scatter scatter_add scatter_mul
reduce_sum cumsum linear_recurrence reduce_window_sum select_and_gather_add select_and_scatter_add
dot_general conv_general_dilated triangular_solve tridiagonal_solve fft
psum all_gather psum_scatter all_to_all ppermute
""".split()
GIVEN = ["custom_linear", "ein", "linear_while", "linear_scan"]  # linear in what a param says: a map, terms, loops


def names(primitives: Any) -> list[str]:
    """The names of primitives of ours: those that tests define have no place in the registry of names."""
    ours = {*all_primitives()}
    return sorted(p.name for p in primitives if p in ours)


def test_n_rules_push_forward():
    assert names(jvp.rules) == names(all_primitives())


def test_h_rules_take_programs_apart():
    assert names(partial_eval.rules) == sorted(HIGHER)
    assert all(p.carries_programs or p.name == "optimization_barrier" for p in partial_eval.rules)


def test_l_rules_transpose():
    assert names(jvp.structurally_linear) == sorted(LINEAR)
    assert names(transpose.rules) == sorted([*LINEAR, *HIGHER, *GIVEN])
    assert not set(jvp.structurally_linear) & set(partial_eval.rules)


def test_others_have_the_rule_of_forward_mode_only():
    """Of N, most: the derivative of sin is stated once."""
    others = set(all_primitives()) - set(transpose.rules)
    assert len(others) == len(names(jvp.rules)) - len(HIGHER) - len(LINEAR) - len(GIVEN) > len(all_primitives()) / 2


def test_rules_by_a_public_call():
    """LO14: N + H + L rules, not 2 N."""
    found = tl.testing.derivative_rules()
    n, h, own = len(found.forward_mode), len(found.partial_evaluation), {*found.transposition}
    assert [list(x) for x in found] == [names(jvp.rules), names(partial_eval.rules), names(transpose.rules)]
    assert n == len(all_primitives()) == len({*found.forward_mode})
    assert {*found.partial_evaluation} <= own <= {*found.forward_mode}
    assert n + h + len(own) < 1.5 * n


def test_no_other_table_is_of_derivatives():
    ours = [module for name, module in sys.modules.items() if name.startswith("tapeless.")]
    tables = {id(x): x for module in ours for x in vars(module).values() if isinstance(x, Table)}
    tables = [x for x in tables.values() if any(isinstance(key, Primitive) for key in x)]
    words = ("jvp", "vjp", "grad", "deriv", "tangent", "partial", "transpos", "accumul")
    found = sorted(table.name for table in tables if any(word in table.name for word in words))
    assert found == ["jvp", "partial_eval", "transpose"]


# ---- what linear jaxprs contain --------------------------------------------------------------------------------


def on_linear_values(jaxpr: Jaxpr) -> Iterator[Primitive]:
    """The primitives of equations that compute linear values, in programs that are carried too."""
    for eqn in jaxpr.eqns:
        if eqn.linear:
            yield eqn.primitive
        for inner in subjaxprs(eqn.params):
            yield from on_linear_values(inner)


def check_contents(f: Any, args: Sequence[Any], reverse: bool = True) -> set[Primitive]:
    """Primitives of both linear jaxprs of a derivative, of which each can be transposed."""
    halves = tl.unzip(f, *args)
    programs = [halves.linear, halves.transposed] if reverse else [halves.linear]
    found = {primitive for program in programs for primitive in on_linear_values(program)}
    assert names(found - set(transpose.rules)) == []
    return found


@pytest.mark.parametrize("f", NETWORKS, ids=lambda f: f.__name__)
def test_contents_for_networks(f):
    assert check_contents(f, NETWORKS[f])


@pytest.mark.parametrize("name", test_compositions.PROGRAMS)
def test_contents_for_control_flow(name):
    pair = test_compositions.PROGRAMS[name]
    check_contents(pair.staged, (test_compositions.X,), pair.reverse)


@pytest.mark.parametrize("seed", range(20))
def test_contents_for_structured_programs(seed):
    check_contents(structured_programs.program(seed), structured_programs.arguments())


@over(PRIMITIVES.values())
def test_contents_for_primitives(row: Sample):
    f, args, reverse = of_primitive(row)
    if args:  # none, if it has none that it can be differentiated in
        check_contents(lambda *xs: list(f(*xs)), args, reverse)


@over(rows_that_are_linear)
def test_linear_primitives_are_linear_jaxprs(row: Sample):
    """What is of L may stand in a linear jaxpr: the primitive alone is one."""
    found = linear_jaxpr(row)
    if found is not None:
        linearity.check_linear(found[0])


def test_every_linear_primitive_is_a_linear_jaxpr():
    across = {row.primitive.name for row in SAMPLES if row.axis is not None}
    rounding = {"reduce_precision"}  # taken for linear, as a conversion is, though it is not to the last bit
    assert {row.primitive.name for row in rows_that_are_linear} | across | rounding >= set(LINEAR)


def test_the_checker_knows_what_they_are_linear_in():
    of_their_own = "linear_solve linear_while linear_scan optimization_barrier custom_linear ein".split()
    # and all that describe their bodies
    assert names(p for p in linearity.rules if p in all_primitives()) == sorted(of_their_own)
