"""Passes of the index language: normal forms, meaning, cost, and independence of the order of rewriting."""

import hashlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless.interpreters.analysis import cost
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr, Var
from tapeless.tracer.terms.solve import _Solution, is_solved, solve_term
from tests.index_language.test_random_bodies import bulk_names, random_element, random_program
from tests.interpreters.analysis.test_cost import NETWORKS
from tests.messages import text_of
from tests.samples import FAMILIES, SAMPLES
from tests.tracer.terms.random_terms import looped, operands, terms

X, A = tnp.zeros(5), tnp.zeros((4, 6))
IN_ORDER = (ix.let_lift, ix.pair_eliminate, ix.tensor_ssa, ix.gen_push_out, ix.solve, ix.merge, ix.raise_terms, ix.fuse)
LOCAL = tuple(p for p in IN_ORDER if p is not ix.fuse)


PLACES = np.array([[0, 2, 2, 3], [1, 0, 2, 4]])
RELATED = (
    "R[i, j] * ({})",
    "S[j, i] * ({})",
    "exists(3, lambda q: R[i, q + j]) * ({})",
    "total(3, lambda q: R[j, q] * ({}))",
)


def related_program(seed: int) -> tuple[str, Any]:
    """Write a random formula times what a relation or a sparse array has, and the array of it as a function."""
    rng = np.random.default_rng(seed)
    text = RELATED[seed % len(RELATED)].format(random_element(rng, ["i", "j"], 2))
    p, relation = rng.integers(-1, 6, 5), ix.relation(PLACES, (5, 5))

    def bulk(x: Any, a: Any) -> Any:
        sparse = ix.sparse(PLACES, 2 * x[:4], (5, 5))
        names = {**bulk_names(x, a, tnp.asarray(p)), "R": relation, "S": sparse, "exists": ix.exists}
        return ix.build((3, 4), lambda i, j: eval(text, {**names, "i": i, "j": j}))

    return text, bulk


def programs(seed: int) -> Iterator[ClosedJaxpr]:
    """The program of a random body, every third with relations, and of its gradient, with a call in each."""
    _, f = random_program(seed) if seed % 3 else related_program(seed // 3)
    yield tl.make_jaxpr(tl.jit(f))(X, A)
    yield tl.make_jaxpr(tl.jit(tl.grad(lambda x, a: (f(x, a) * 2.0).sum(), (0, 1))))(X, A)


@pytest.mark.parametrize("seed", range(30))
def test_normal_forms_cost_no_more(seed: int):
    """One pass after the other; `solve` and `merge` find their normal form there, as tracing writes it."""
    for program in programs(seed):
        for run in IN_ORDER:
            after = run(program)
            assert run.is_normal(after) and run(after).jaxpr is after.jaxpr, run
            assert cost.work(after.jaxpr) <= cost.work(program.jaxpr), run
            if run in (ix.solve, ix.merge, ix.pair_eliminate):
                assert run.is_normal(program) and after.jaxpr is program.jaxpr
            program = after
        assert ix.lower_terms.is_normal(ix.lower_terms(program))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_pass_raises_the_work_of_a_primitive(family: str):
    """Of no program that is one equation; values that nothing reads any more count apart."""
    for row in [row for row in FAMILIES[family] if row.axis is None]:
        program = tl.make_jaxpr(lambda *xs, row=row: row.primitive.bind(*xs, **row.params))(*row.args).jaxpr
        for run in IN_ORDER:
            after = run(program)
            assert run.is_normal(after), (run, row)
            before, found = cost.cost(program), cost.cost(after)
            assert found.work - found.drops <= before.work - before.drops, (run, row)
            program = after


@pytest.mark.parametrize(
    "name",
    [
        "neg",
        "add",
        "sub",
        "mul",
        "dot_general",
        "reduce_sum",
        "cumsum",
        "transpose",
        "rev",
        "slice",
        "broadcast_in_dim",
    ],
)
def test_what_came_from_one_primitive_is_lowered_to_it(name: str):
    """An outer product is a product of broadcast arrays, a broadcast may be a reshape first: as many operations."""
    ways = {(name,), *OTHER_WAYS.get(name, ())}
    rows = [row for row in SAMPLES if row.primitive.name == name and row.axis is None]
    found = list[tuple[str, ...]]()
    for row in rows:
        program = tl.make_jaxpr(lambda *xs, row=row: row.primitive.bind(*xs, **row.params))(*row.args).jaxpr
        raised = ix.raise_terms(program)
        if [eqn.primitive.name for eqn in raised.eqns] == ["ein"]:
            lowered = ix.lower_terms(raised)
            found.append(tuple([eqn.primitive.name for eqn in lowered.eqns]))
            assert cost.work(lowered) == cost.work(program), row
    assert found and set(found) <= ways


OTHER_WAYS = {
    "dot_general": [("mul",), ("broadcast_in_dim", "broadcast_in_dim", "mul")],
    "broadcast_in_dim": [("reshape", "broadcast_in_dim")],
}
NETWORK_PROGRAMS = {f.__name__: (f, args) for f, args in NETWORKS.items()}


@pytest.mark.parametrize("name", NETWORK_PROGRAMS)
def test_no_pass_raises_the_work_of_a_network(name: str):
    """Nor of its gradient: a perceptron, a convolutional network, a recurrent scan, attention."""
    f, args = NETWORK_PROGRAMS[name]
    for program in (tl.make_jaxpr(f)(*args).jaxpr, tl.unzip(f, *args).transposed):
        for run in IN_ORDER:
            after = run(program)
            assert run.is_normal(after), run
            assert cost.work(after) <= cost.work(program), run
            program = after


def doubled(n: int) -> Any:
    """A function that calls another twice, which calls another twice, and so on, n times."""
    f: Any = lambda x: ix.build(5, lambda i: x[i] * x[i - 1])  # noqa: E731
    for _ in range(n):
        f = tl.jit(lambda x, f=f: f(x) + f(2 * x))
    return f


def test_passes_visit_a_function_once():
    """Equations of functions that are called often are rewritten once; equal calls are one before they are raised."""
    small, large = [tl.make_jaxpr(doubled(n))(X) for n in (5, 10)]
    for run in (ix.gen_push_out, ix.raise_terms, ix.solve, ix.merge, ix.fuse):
        sizes = [tl.program_size(run(program)) for program in (small, large)]
        assert run.is_normal(run(large)) and sizes[1] <= 2 * sizes[0], run
    sizes = [len(ix.tensor_ssa(program).jaxpr.eqns) for program in (small, large)]
    assert sizes[1] <= 4 * sizes[0]  # x, 2 x, 4 x, ..: n of n functions


def test_conversions_are_no_terms():
    """They would be of their own results, and so on."""
    program = tl.make_jaxpr(lambda x, i: x[:3] * i.astype("float32"))(X, tnp.arange(3))
    after = ix.tensor_ssa(program)
    assert [eqn.primitive.name for eqn in after.jaxpr.eqns].count("convert_element_type") == 1
    assert ix.tensor_ssa.is_normal(after)


@pytest.mark.parametrize("seed", range(6))
def test_passes_preserve_meaning(seed: int):
    rng = np.random.default_rng(seed)
    with tl.enable_x64():
        given = tnp.asarray(rng.normal(size=5)), tnp.asarray(rng.normal(size=(4, 6)))
        _, f = random_program(seed)
        program = tl.make_jaxpr(tl.jit(lambda x, a: (f(x, a), *tl.grad(lambda *s: f(*s).sum(), (0, 1))(x, a))))(*given)
        expected = values(program, given)
        for run in (*IN_ORDER, ix.lower_terms):
            program = run(program)
            for x, y in zip(values(program, given), expected, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11, err_msg=run.__name__)


def values(program: ClosedJaxpr, given: Any) -> list[Any]:
    return tl.jit(lambda *x: tl.core.eval_jaxpr(program.jaxpr, program.consts, *x))(*given)


# ---- confluence ------------------------------------------------------------------------------------------------


def shuffled(jaxpr: Jaxpr, rng: random.Random) -> Jaxpr:
    """The program with its equations in a random order that is one of evaluation."""
    left, done, eqns = list(jaxpr.eqns), set(jaxpr.invars), []
    while left:
        eqn = rng.choice([eqn for eqn in left if all(v in done for v in eqn.invars if isinstance(v, Var))])
        left.remove(eqn)
        eqns.append(eqn)
        done.update(eqn.outvars)
    return jaxpr.replace(eqns=eqns)


def digest(jaxpr: Jaxpr) -> list[str]:
    """What is computed, whatever the order of equations and the names of variables."""
    found: dict[Any, str] = {v: f"input {k}" for k, v in enumerate(jaxpr.invars)}

    def read(x: Any) -> str:
        return found[x] if isinstance(x, Var) else f"{x.aval} {x.value}"

    for eqn in jaxpr.eqns:
        params = sorted(eqn.params.items(), key=lambda p: p[0])
        text = repr((eqn.primitive.name, params, list(map(read, eqn.invars))))
        for k, v in enumerate(eqn.outvars):
            found[v] = hashlib.sha1(f"{k} {text}".encode()).hexdigest()
    return list(map(read, jaxpr.outvars))


def rewritten_at_random(program: ClosedJaxpr, rng: random.Random) -> ClosedJaxpr:
    """Run passes in random order, on equations in random order, until the program has all normal forms."""
    for _ in range(20):
        todo = [run for run in LOCAL if not run.is_normal(program)]
        if not todo:
            return program
        program = rng.choice(todo)(program)
        program = ClosedJaxpr(shuffled(program.jaxpr, rng), program.consts)
    raise AssertionError(f"no end: {todo}")


@pytest.mark.parametrize("seed", range(20))
def test_normal_forms_do_not_depend_on_the_order_of_rewriting(seed: int):
    for program in programs(seed):
        found = [rewritten_at_random(program, random.Random(k)) for k in range(3)]
        assert len({tuple(digest(p.jaxpr)) for p in found}) == 1
        assert len({cost.work(ix.fuse(p).jaxpr) for p in found}) == 1


class AtRandom(_Solution):
    """Solving with brackets in a random order at every step."""

    rng = random.Random(0)

    def step(self) -> bool:
        self.brackets = tuple(self.rng.sample(self.brackets, len(self.brackets)))
        return super().step()


@settings(max_examples=150)
@given(t=terms(), seed=st.integers(0, 2**16))
def test_brackets_are_solved_in_any_order(t: Any, seed: int):
    """Each order ends in a normal form that means the same."""
    given = operands(seed)
    AtRandom.rng = random.Random(seed)
    found = [solve_term(t), AtRandom(t.out, dict(enumerate(t.sizes)), t.factors, t.brackets, t.coefficient).solved()]
    for after in found:
        assert after is None or is_solved(after)
        np.testing.assert_array_equal(looped(() if after is None else (after,), given), looped((t,), given))


# ---- brackets and terms that somebody wrote ----------------------------------------------------------------------


def parsed(ein: str) -> ClosedJaxpr:
    return tl.parse_jaxpr(f"{{ lambda a:f32[3,3] b:f32[3]. let {ein} in c }}")


@pytest.mark.parametrize(
    "run, before, after",
    [
        (ix.solve, "c:f32[3] = ein[c[i] += Σ j. [i = j] a[i,j]] a", "c:f32[3] = ein[c[i] += a[i,i]] a"),
        (ix.solve, "c:f32[3] = ein[c[i] += Σ j. [i >= 0] a[i,j]] a", "c:f32[3] = ein[c[i] += Σ j. a[i,j]] a"),
        (ix.solve, "c:f32[3] = ein[c[i] += Σ j. [j >= 2] a[i,j]] a", "c:f32[3] = ein[c[i] += a[i,2]] a"),
        (ix.merge, "c:f32[3] = ein[c[i] += b[i]; c[j] += 2 b[j]] b", "c:f32[3] = ein[c[i] += 3 b[i]] b"),
    ],
)  # fmt: skip
def test_rewriting_what_is_not_in_normal_form(run: Any, before: str, after: str):
    program = parsed(before)
    assert not run.is_normal(program)
    assert str(run(program)) == str(parsed(after))


def test_elements_are_read_where_they_come_from():
    program = ix.tensor_ssa(tl.make_jaxpr(lambda x: x[::2][1:][::-1] * x[:2])(X))
    assert not ix.gen_push_out.is_normal(program)
    expected = "{ lambda a:f32[5]. let\n    b:f32[2] = ein[b[i] += a[4 - 2i] a[i]] a\n  in b }"
    assert str(ix.gen_push_out(program)) == expected


def test_show():
    program = tl.make_jaxpr(lambda x, g: ix.build(3, lambda i: ix.sum(3, lambda j: g[j] * x[i + j])))(X, X[:3])
    assert ix.show(program) == "Σ[j] a[c + j] * b[j]"
    assert ix.show(program, "latex") == "\\sum_{j} a_{c + j} \\, b_{j}"
    names: dict[str, Any] = {}
    exec(ix.show(program, "numpy"), names)
    x, g = np.arange(5.0), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(names["derivative"](x, g), np.convolve(x, g[::-1], "valid"))
    with pytest.raises(ValueError) as caught:
        ix.show(program, "html")
    assert text_of(caught.value) == "index.show: form='html' is none of 'text', 'latex', 'einsum', 'numpy'."


def test_what_is_no_program():
    with pytest.raises(TypeError) as caught:
        ix.solve(lambda x: x)  # type: ignore[type-var]
    expected = "index.solve: expected a program, not an object of type function: tl.make_jaxpr(f)(*args)."
    assert text_of(caught.value) == expected


# ---- one-hots ----------------------------------------------------------------------------------------------------


def one_hots(program: Jaxpr) -> int:
    """Terms that are written where an index expression says: at other places than all, in order."""
    count = 0
    for eqn in ix.gen_push_out(ix.tensor_ssa(program)).eqns:
        assert eqn.primitive.name not in ("scatter", "scatter_add")
        for t in eqn.params.get("terms", ()):
            written = [a.variable for a, n in zip(t.out, eqn.params["shape"], strict=True) if n > 1]
            count += None in written or len(set(written)) < len(written)
    return count


@pytest.mark.parametrize("seed", range(60))
def test_one_hots_are_at_most_as_many_as_index_expressions(seed: int):
    """An index expression is what reads an array, or is compared in a condition."""
    text, f = random_program(seed)
    written = text.count("[") + sum(text.count(f" {sign} ") for sign in ("==", "!=", "<", "<=", ">", ">="))
    assert one_hots(tl.unzip(f, X, A).transposed) <= written, text
