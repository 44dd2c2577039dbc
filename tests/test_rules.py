"""No rule is missing: the tables, walked."""

from collections.abc import Iterable

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.lowering import emit
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


def test_every_primitive_has_a_vmap_rule():
    assert missing_rules(vmap.rules, all_primitives()) == []
