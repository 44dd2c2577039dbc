"""Random programs of fixed seeds, compiled as users compile them: all modes agree, with each other and the oracle.

`python -m tests.fuzzing` runs on with other seeds. What it finds becomes a test where it belongs, not a seed here.
"""

import platform
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.interpreters import roots
from tapeless.interpreters.terms import lower_ein
from tapeless.lowering.rules import elementwise as elementwise_rules
from tapeless.lowering.rules import shape as shape_rules
from tests.fuzzing.builder import Session, build, fit
from tests.fuzzing.families import TABLE
from tests.fuzzing.judge import judge
from tests.fuzzing.modes import Case
from tests.fuzzing.noise import noisy
from tests.fuzzing.profiles import PROFILES
from tests.fuzzing.program import Program, Statement, Var
from tests.fuzzing.report import script
from tests.fuzzing.shrink import same_way, shrink
from tests.fuzzing.sizes import MOST
from tests.jaxlib_release import RELEASE
from tests.lowering.test_xla_defects import DEFECTS
from tests.settings import restored_settings

SEEDS = {
    "all": range(4),
    "sizes": (0, 1, 3, 6),
    "rules": range(2),
    "linalg": range(2),
    "nested": range(2, 6),
    "loops": range(2),
    "narrow": (0, 2),
    "empty": (1, 2),
    "special": range(5),
    "kinks": (0, 2),
    "integers": range(2),
    "rounded": (136, 137, 156),
}
pytestmark = pytest.mark.usefixtures("optimized")


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with tl.enable_x64(True):
        yield


@pytest.mark.parametrize("profile, seed", [(p, seed) for p, seeds in SEEDS.items() for seed in seeds])
@pytest.mark.filterwarnings("ignore")
def test_all_modes_agree(profile: str, seed: int):
    with tl.enable_x64(PROFILES[profile].bits == 64):
        program, _ = build(PROFILES[profile], seed, TABLE)
        case = Case(program, seed)
        verdict = judge(case)
    assert not verdict.disagreements, (
        script(case, [d.mode for d in verdict.disagreements]) + "\n" + "\n".join(map(str, verdict.disagreements))
    )


# ---- the net itself ------------------------------------------------------------------------------------------

X, Y = Var("x1", (3,), "float64"), Var("x2", (3,), "float64")
A, B, C = (Var(name, (3,), "float64") for name in "abc")


@tl.custom_jvp
def rule(x):
    return x * x


rule.defjvp(lambda primals, tangents: (rule(*primals), 3 * primals[0] * tangents[0]))


def of_three() -> Program:
    statements = (
        Statement((A,), "{o0} = tnp.sin({0})", (X,), (), "tnp.sin"),
        Statement((B,), "{o0} = WRONG({0})", (A,), (), "wrong"),
        Statement((C,), "{o0} = {0} + {1}", (B, Y), (), "add"),
    )
    return Program((X, Y), statements, (C,), preamble="from tests.fuzzing.test_fuzzing import rule as WRONG")


def test_a_wrong_rule_is_found_in_every_mode():
    verdict = judge(Case(of_three(), 0), every=True)
    wrong = {d.mode for d in verdict.disagreements}
    assert {"jvp jit", "jvp eager", "linearize jit", "vjp jit", "vjp eager", "vmap vjp", "checkpoint dots"} <= wrong
    assert not wrong & {"eager", "jit", "vmap"}


def _with_reverses(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lower_ein, "in_periods", lambda term, operands, shape: (term,))
    patch.setattr(shape_rules, "MOST_ROWS", 0)


def _with_signed_products(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(elementwise_rules, "in_unsigned", lambda rule: rule)


def _with_roots(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(roots, "even_power", lambda *args: None)


# What keeps a defect out, the mode that shows it, and the name of XLA's defect. `sizes` has none: YNN ends the process.
REMOVED = {
    "rotations": (_with_reverses, "jit", "reversed_rows"),
    "integers": (_with_signed_products, "jit", "square_of_integers"),
    "kinks": (_with_roots, "jvp of vjp", ""),
}


@pytest.mark.parametrize("profile", REMOVED)
@pytest.mark.filterwarnings("ignore")
def test_a_profile_finds_its_defect_where_nothing_keeps_it_out(profile: str, monkeypatch: pytest.MonkeyPatch):
    remove, mode, name = REMOVED[profile]
    if profile == "rotations" and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("LLVM errs with AVX")
    mended = DEFECTS[name].mended if name else None
    if mended is not None and mended <= RELEASE:
        pytest.skip("this release of XLA has not the defect")
    with monkeypatch.context() as patch:
        remove(patch)
        tl.clear_caches()
        programs = (Case(build(PROFILES[profile], seed, TABLE)[0], seed) for seed in range(60))
        found = next((case for case in programs if judge(case, only=[mode]).disagreements), None)
    tl.clear_caches()
    assert found is not None, "none of 60 programs"
    assert not judge(found, only=[mode]).disagreements


def test_a_program_shrinks_to_the_statement_that_is_wrong():
    def judged(program):
        return judge(Case(program, 0), only=["jvp jit"])

    found = judged(of_three()).disagreements[0]
    program = shrink(of_three(), same_way(judged, found.kind(), of_three()))
    assert program.source().splitlines()[-2:] == ["    b = WRONG(x1)", "    return (b,)"]
    assert {v.shape for v in program.args} == {(1,)}


@tl.custom_jvp
def rule_of_many(x):
    return x * x


rule_of_many.defjvp(lambda p, t: (rule_of_many(*p), (3 if p[0].size >= 20_000 else 2) * p[0] * t[0]))


def of_many() -> Program:
    x, a, b = (Var(name, (40_001,), "float64") for name in ("x1", "a", "b"))
    statements = (
        Statement((a,), "{o0} = WRONG({0})", (x,), (), "wrong"),
        Statement((b,), "{o0} = tnp.sort(tnp.sin({0}) + {0})", (a,), (), "tnp.sort"),
    )
    return Program((x,), statements, (b,), preamble="from tests.fuzzing.test_fuzzing import rule_of_many as WRONG")


def test_a_size_shrinks_to_where_the_fault_begins():
    def judged(program):
        return judge(Case(program, 0), only=["jvp jit"])

    found = judged(of_many()).disagreements[0]
    program = shrink(of_many(), same_way(judged, found.kind(), of_many()))
    assert program.size() == 1
    (argument,) = program.args
    assert 20_000 <= argument.size < 21_000
    scope: dict[str, Any] = {}
    with restored_settings():
        exec(script(Case(program, 0), []), scope)  # large arguments are printed as what makes them
    np.testing.assert_array_equal(scope["x1"], Case(program, 0).args[0])


def test_large_programs_have_no_table_of_all_pairs():
    """Neither as a result, nor inside of an expression, nor as the windows that the oracle takes apart."""
    x = tl.ShapeDtypeStruct((40_001,), np.dtype("float64"))
    pairs = (lambda x: tnp.outer(x, x), lambda x: tnp.max(x[:, None] - x), lambda x: tnp.convolve(x, x))
    for f in (
        *pairs,
        lambda x: tl.vmap(lambda a: tnp.sum(a * x))(x),
        lambda x: lax.cond(x[0] > 0, pairs[1], tnp.sum, x),
    ):
        assert not fit(tl.make_jaxpr(f)(x), MOST)
    assert fit(tl.make_jaxpr(lambda x: tnp.sort(tnp.cumsum(x)))(x), MOST)


def test_every_profile_draws_large_programs():
    axes: set[int] = set()
    for profile in PROFILES.values():
        extents = [Session(profile, seed, TABLE).extent for seed in range(100)]
        assert 3 <= sum(e.is_large for e in extents) <= (100 if profile.name == "sizes" else 20)
        axes |= {len(e.main) for e in extents}
    assert axes >= {1, 2, 3, 7, 8}


def test_what_rounding_decides_is_no_disagreement():
    """The order of two equal products is open: argmax of them scatters, which noise shows."""
    x, y = np.array([0.3, 0.7]), np.array([0.1, 0.9])
    jaxpr = tl.make_jaxpr(lambda x, y: (tl.numpy.argmax(tl.numpy.stack([x * y, y * x]), 0), x * y))(x, y)
    runs = [noisy(jaxpr, [x, y], 2.0**-52, seed) for seed in range(8)]
    assert any((a[0] != runs[0][0]).any() for a in runs)
    assert all(np.allclose(a[1], x * y, rtol=1e-13) for a in runs)


def test_programs_are_the_same_for_a_seed():
    sources = [[build(PROFILES[name], 7, TABLE)[0].source() for name in PROFILES] for _ in range(2)]
    assert sources[0] == sources[1]
