"""No rule is missing: the tables, walked."""

import subprocess
import sys
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


LOOKED_UP = """
import sys
from concurrent.futures import ThreadPoolExecutor
import tapeless
from tapeless.interpreters import jvp, vmap
from tapeless.lowering import emit
from tapeless.tracer.core import all_primitives
from tapeless.tracer.primitives.fourier import fft_p
from tapeless.tracer.primitives.sorting import sort_p

assert [name for name in sys.modules if name.startswith("tapeless.") and ".rules." in name] == []
imported = lambda family: f"tapeless.lowering.rules.{family}" in sys.modules
assert not imported("fourier") and not imported("sorting")
lookups = [lambda: fft_p in jvp.rules, lambda: vmap.rules.get(fft_p), lambda: jvp.structurally_linear[fft_p]] * 8
sys.setswitchinterval(1e-6)
with ThreadPoolExecutor(24) as threads:
    assert all(threads.map(lambda look: look() not in (None, False), lookups))
    assert imported("fourier") and not imported("sorting")
    each = all_primitives()  # families whose rules import one another, in another order by each thread
    assert all(threads.map(lambda k: each[k % len(each)] in emit.rules, range(0, 7 * len(each), 7)))
assert sort_p in set(vmap.rules) and imported("sorting")
"""


def test_rules_are_imported_when_they_are_looked_up():
    """In any table, by several threads at once, or by going through a table."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", LOOKED_UP], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
