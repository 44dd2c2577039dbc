"""No rule is missing: the tables, walked."""

from collections.abc import Iterable

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.lowering import emit, physical
from tapeless.tracer.core import Primitive, all_primitives
from tapeless.tracer.rules import Rules


def missing_rules(table: Rules, primitives: Iterable[Primitive]) -> list[str]:
    return sorted(p.name for p in primitives if p not in table)


def test_there_are_primitives():
    assert len(all_primitives()) > 50


def test_every_primitive_has_a_jvp_rule():
    assert missing_rules(jvp.rules, all_primitives()) == []


def test_every_primitive_has_an_emit_rule():
    assert missing_rules(emit.rules, all_primitives()) == []


def test_every_linear_primitive_has_a_transpose_rule():
    assert jvp.structurally_linear
    assert missing_rules(transpose.rules, jvp.structurally_linear) == []


def test_every_primitive_that_takes_keys_has_a_rule_for_their_words():
    taking = [p for p in all_primitives() if p.takes_keys and not p.carries_programs]
    assert missing_rules(physical.rules, taking) == []
    assert [p.name for p in physical.rules if not p.takes_keys] == []


def test_every_primitive_has_a_vmap_rule():
    assert missing_rules(vmap.rules, all_primitives()) == []
