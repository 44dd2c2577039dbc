"""tl.explain: three programs as tables, with their costs, their lines, and what each equation was made from."""

import re
import unicodedata
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import checkpoint_policies as policies
from tapeless import lax
from tapeless.explanation.tables import Phase, Row
from tapeless.explanation.terminal_text import WIDTH, keys_text, wrapped
from tapeless.interpreters.analysis import cost as counting
from tests.messages import dotted, place, raises

ONE = np.float32(1.0)
THREE = np.ones(3, np.float32)


def running(x):
    return tnp.sin(x) * x


def steps(x, start):
    def body(c, y):
        s = tnp.sin(c)
        return s * y, c

    c, ys = lax.scan(body, start, x)
    return c + tnp.sum(ys)


def cases(x):
    return lax.cond(x > 0, lambda x: tnp.sin(x) * x, lambda x: x * x * x, x)


def looped(x):
    return lax.fori_loop(0, 3, lambda i, c: tnp.sin(c) * c, x)


@tl.jit
def layer(w, x):
    h = w @ x
    return tnp.tanh(h)


def mlp(params, x):
    for w in params["w"]:
        x = layer(w, x)
    return tnp.sum(x**2)


def shared(x):
    twice = tl.jit(running)
    return twice(twice(x))


def parts(x):
    return x[0] * x[1] + tnp.sum(x[1:] * x[:-1])


@tl.custom_jvp
def with_jvp(x):
    return tnp.sin(x)


@with_jvp.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return tnp.sin(x), tnp.cos(x) * t


@tl.custom_vjp
def with_vjp(x):
    return tnp.sin(x)


with_vjp.defvjp(lambda x: (tnp.sin(x), x), lambda x, ct: (tnp.cos(x) * ct,))

again = tl.checkpoint(lambda x: tnp.sin(tnp.sin(x) * x))
WEIGHTS: dict[str, Any] = {"w": [np.ones((4, 3), np.float32), np.ones((2, 4), np.float32)]}

EVERY: dict[str, tuple[Any, ...]] = {
    "running": (running, THREE),
    "scan": (steps, THREE, ONE),
    "cond": (cases, ONE),
    "loop": (looped, ONE),
    "mlp": (mlp, WEIGHTS, THREE),
    "shared": (shared, THREE),
    "parts": (parts, THREE),
    "custom_jvp": (with_jvp, ONE),
    "custom_vjp": (with_vjp, ONE),
    "checkpoint": (again, THREE),
    "vmap": (tl.vmap(cases), THREE),
    "gradient": (tl.grad(running), ONE),
    "constant": (lambda x: x * WEIGHTS["w"][0], THREE),
    "identity": (lambda x: x, ONE),
    "no derivative": (lambda x: tl.stop_gradient(x) + 1, ONE),
}
every = pytest.mark.parametrize("name", EVERY)


def columns(line: str) -> int:
    return sum(not unicodedata.combining(c) for c in line)


def rows(phase: Phase) -> dict[str, Row]:
    return {row.key: row for row in phase.walk()}


# ---- the text -------------------------------------------------------------------------------------------------


def test_text_of_the_running_example():
    file, line = place(running, "tnp.sin").split(" ")[0].split(":")
    line = line.rjust(4)
    expected = f"""running: work 9 and 36 bytes of residuals; then 12 for a tangent, 12 for a gradient
live ▁▅██│██▁▁ forward, and backward; at most 24 bytes at {file}:{line.strip()}
lines of {file}

    PRIMAL: work 9                        nonlinear  adds  muls  bytes  saved    line
    takes a:f32[3] (x)
p1  b:f32[3] = sin a                              3                 12  m3       {line}
p2  c:f32[3] = cos a                              3                 12  m1       {line}
p3  d:f32[3] = mul b a                            3                 12           {line}
    gives d
    total                                         9                 36

    LINEAR: work 12                       nonlinear  adds  muls  bytes  from     line
    takes the residuals, ė:f32[3] (tangent of x)
l1  ḟ:f32[3] = mul ė c                                        3     12  p1 p2    {line}
l2  ġ:f32[3] = mul ḟ a                                        3     12  p3       {line}
l3  ḣ:f32[3] = mul b ė                                        3     12  p3       {line}
l4  i̇:f32[3] = add ġ ḣ                                  3           12  p3       {line}
    gives i̇
    total                                               3     9     48

    TRANSPOSED: work 12                   nonlinear  adds  muls  bytes  from     line
    takes the residuals, j̇:f32[3] (cotangent)
t1  k̇:f32[3] = mul j̇ b                                        3     12  l3       {line}
t2  l̇:f32[3] = mul j̇ a                                        3     12  l2       {line}
t3  ṁ:f32[3] = mul l̇ c                                        3     12  l1       {line}
t4  ṅ:f32[3] = add k̇ ṁ                                  3           12  l1       {line}
    gives ṅ (of x)
    total                                               3     9     48

    RESIDUALS                                                    bytes  made by  line
m1  c:f32[3], from cos                                              12  p2       {line}
m2  a:f32[3], the argument x                                        12
m3  b:f32[3], from sin                                              12  p1       {line}
    total                                                           36"""
    assert str(tl.explain(running, THREE)) == dotted(expected)


@every
def test_text_fits_a_terminal(name: str):
    f, *args = EVERY[name]
    explained = tl.explain(f, *args)
    assert max(map(columns, str(explained).splitlines())) <= WIDTH
    assert repr(explained) == str(explained)


def test_long_equations_are_wrapped_and_lose_nothing():
    text = str(tl.explain(steps, THREE, ONE))
    assert "@primal_body, 3 times: takes" in text
    for word in ("jaxpr=@primal_body", "length=3", "reverse=True"):
        assert word in text
    assert wrapped("  a b c", 5) == ["  a b", "      c"]
    assert wrapped("a bcdefgh", 5, 0) == ["a", "bcdef", "gh"]
    assert wrapped("", 5) == [""]


def test_keys_are_written_shortly():
    assert keys_text(["p2", "p3", "p4", "p7", "p8", "l9", "l10", "l11"]) == "p2-p4 p7 p8 l9-l11"
    assert keys_text([]) == ""


# ---- what is counted ------------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("policy", [None, policies.nothing_saveable], ids=["save all", "save nothing"])
def test_totals_are_those_of_the_programs(name: str, policy: Any):
    f, *args = EVERY[name]
    explained, unzipped = tl.explain(f, *args, policy=policy), tl.unzip(f, *args, policy=policy)
    programs = (unzipped.primal.jaxpr, unzipped.linear, unzipped.transposed)
    for phase, program in zip((explained.primal, explained.linear, explained.transposed), programs, strict=True):
        assert str(phase.program) == str(program)
        assert phase.cost == counting.cost(program)
        assert phase.cost.work == tl.work(program) == sum(row.cost.work for row in phase.rows) + phase.unread
        assert phase.nbytes == sum(v.aval.size * v.aval.dtype.itemsize for eqn in program.eqns for v in eqn.outvars)
    assert explained.residuals.nbytes == tl.residual_bytes(unzipped) == tl.residual_bytes(explained.unzipped)


def test_programs_inside_are_nested_and_counted():
    (loop,) = [row for row in tl.explain(steps, THREE, ONE).primal.rows if row.bodies]
    (body,) = loop.bodies
    assert (body.title, body.often) == ("@primal_body", "3 times")
    assert loop.cost.work == 3 * body.cost.work == 3 * sum(row.cost.work for row in body.rows or ())


def test_branches_are_nested_and_the_dearest_counts():
    (branch,) = [row for row in tl.explain(cases, ONE).linear.rows if row.bodies]
    assert [body.often for body in branch.bodies] == [f"branch {i} of 2; the dearest counts" for i in (0, 1)]
    assert branch.cost.work == max(body.cost.work for body in branch.bodies)


def test_a_program_is_shown_once():
    first, second = [row.bodies[0] for row in tl.explain(shared, THREE).primal.rows]
    assert first.rows and second.rows is None
    assert first.cost == second.cost
    assert "@primal_running, shown above" in str(tl.explain(shared, THREE))


def test_what_nobody_reads_is_counted_apart():
    explained = tl.explain(lambda x: tl.stop_gradient(x) + 1, ONE)
    assert explained.linear.unread == explained.linear.cost.work == 1
    assert "values that nobody reads" in str(explained)


# ---- names ----------------------------------------------------------------------------------------------------


def test_a_variable_has_one_name_in_all_programs():
    explained = tl.explain(running, THREE)
    results = [row.text.split(":")[0] for phase in (explained.primal, explained.linear) for row in phase.rows]
    assert len(set(results)) == len(results)
    assert [row.text.split(" = ")[1] for row in explained.linear.rows] == dotted(
        "mul ė c|mul ḟ a|mul b ė|add ġ ḣ"
    ).split("|")


def test_arguments_are_named_by_their_paths():
    explained = tl.explain(mlp, WEIGHTS, THREE)
    names = ["params['w'][0]", "params['w'][1]", "x"]
    assert [text.split(" ", 1)[1] for text in explained.primal.takes] == [f"({name})" for name in names]
    assert [text.split(" ", 1)[1] for text in explained.linear.takes[1:]] == [f"(tangent of {name})" for name in names]
    assert [text.split(" ", 1)[1] for text in explained.transposed.gives] == [f"(of {name})" for name in names]


def test_what_gets_no_cotangent_is_left_out():
    explained = tl.explain(lambda x, n, y: y * n, ONE, 3, ONE)
    assert [text.split(" ", 1)[1] for text in explained.linear.takes[1:]] == ["(tangent of x)", "(tangent of y)"]
    assert [text.split(" ", 1)[1] for text in explained.transposed.gives] == ["(of y)"]


# ---- links ----------------------------------------------------------------------------------------------------


@every
def test_every_equation_has_a_line_and_an_origin(name: str):
    f, *args = EVERY[name]
    explained = tl.explain(f, *args)
    for phase in (explained.primal, explained.linear, explained.transposed):
        assert [row.key for row in phase.walk() if row.source is None] == []
    before = explained.primal
    for phase in (explained.linear, explained.transposed):
        for key, row in rows(phase).items():
            origins = [rows(before)[origin] for origin in explained.origins(key)]
            assert origins, f"{key} comes from nowhere: {row.text}"
            assert {origin.place for origin in origins} == {row.place}
        before = phase


def test_every_line_is_the_users():
    explained = tl.explain(mlp, WEIGHTS, THREE)
    phases = (explained.primal, explained.linear, explained.transposed)
    lines = {row.source.text for phase in phases for row in phase.walk() if row.source}
    assert lines == {
        "h = w @ x",
        "return tnp.tanh(h)",
        "return tnp.sum(x**2)",
    }  # each layer is called once: no call is left


def test_links_hold_for_programs_that_were_simplified():
    explained = tl.explain(lambda x: tnp.trace(tnp.outer(x, x)) + tnp.sum(tnp.outer(x, x) @ x), THREE)
    transposed = rows(explained.transposed)
    assert transposed
    assert all(explained.origins(key) for key in transposed)


def test_a_linear_equation_comes_from_what_it_is_the_derivative_of():
    explained = tl.explain(running, THREE)
    texts = {
        key: row.text.split(" = ")[1]
        for phase in (explained.primal, explained.linear)
        for key, row in rows(phase).items()
    }
    assert [texts[key] for key in explained.origins("l1")] == ["sin a", "cos a"]
    assert [texts[key] for key in explained.origins("l4")] == ["mul b a"]
    assert [texts[key] for key in explained.origins("t1")] == dotted("mul b ė").split("|")
    for key in ("p1", "zz"):
        with pytest.raises(KeyError) as caught:
            explained.origins(key)
        assert caught.value.args == (
            f"origins: no equation {key!r} was made from others. The primal jaxpr has p1 to p3, "
            "the linear jaxpr has l1 to l4, the transposed jaxpr has t1 to t4.",
        )


# ---- policies and errors --------------------------------------------------------------------------------------


def test_policies():
    explained = tl.explain(running, THREE, policy=policies.nothing_saveable)
    assert [saved.argument for saved in explained.residuals] == ["the argument x"]
    again = [row for row in explained.linear.rows if row.cost.nonlinear]
    assert [row.text.split(" = ")[1].split()[0] for row in again] == ["sin", "cos"]
    assert all(explained.origins(row.key) for row in again)


def test_types_will_do():
    assert str(tl.explain(running, tl.ShapeDtypeStruct((3,), "float32"))) == str(tl.explain(running, THREE))


def test_what_cannot_be_explained():
    with raises(TypeError, "explain: expected a function and its arguments, not 3."):
        tl.explain(3, ONE)  # type: ignore[arg-type]
    with raises(TypeError, "explain: expected a policy of tl.checkpoint_policies, or a function, not 'all'."):
        tl.explain(running, ONE, policy="all")  # type: ignore[arg-type]
    for explained in (tl.explain, tl.unzip):
        message = (
            f"{explained.__name__}: argument n of whole is int32[] and argument m['a'] of whole is bool[3], "
            "and integers have no derivative.\n  Convert one with astype(float)."
        )
        with raises(TypeError, message):
            explained(whole, np.int32(3), m={"a": np.ones(3, bool)})
        with raises(TypeError, f"{explained.__name__}: <lambda> was called with no arrays to be differentiated in."):
            explained(lambda: 1.0)
    message = (
        "unzip: argument n of whole is int32[], and integers have no derivative.\n  Convert it with astype(float)."
    )
    with raises(TypeError, message):
        tl.unzip(whole, 3, strict=True)


def whole(n, m=None):
    return n


def test_arguments_by_name():
    def scaled(x, *, by):
        return x * tnp.sin(by["one"])

    explained = tl.explain(scaled, ONE, by={"one": ONE}, policy=policies.nothing_saveable)
    assert sorted(saved.argument for saved in explained.residuals) == ["the argument by['one']", "the argument x"]
    assert str(tl.unzip(scaled, ONE, by={"one": ONE}).linear) == str(
        tl.unzip(lambda x, y: x * tnp.sin(y), ONE, ONE).linear
    )
    assert tl.cost(scaled, ONE, by={"one": ONE}).work == 2


@pytest.mark.parametrize("asked", [tl.explain, tl.unzip, tl.cost, tl.saved_residuals])
def test_messages_name_who_traces(asked):
    who = asked.__name__
    message = (
        f"{who}: argument m of {place(whole)} is 'a' of type str, which is not an array.\n"
        "  Close over it, or make it a field that is no child: meta_fields of tl.tree_util.register_dataclass."
    )
    if asked in (tl.unzip, tl.cost):  # the others take arguments of any kind
        with raises(TypeError, message):
            asked(whole, ONE, m="a")
    with raises(TypeError, f"{who}: the result of {place(text)} is 'text' of type str, which is not an array."):
        asked(text, ONE)
    with pytest.raises(tl.errors.TracerBoolConversionError, match=f"traced for {who}."):
        asked(lambda x: x if x > 0 else -x, ONE)


def text(x):
    return "text"


def test_passes_are_the_way_of_the_linearized_program():
    def f(x, y):
        return tnp.where(x > 0, tnp.sqrt(x), 0.0) @ tnp.outer(x, y) @ y

    explained = tl.explain(f, THREE, THREE)
    assert [stage.name for stage in explained.passes] == ["as written", "masks.sink", "fusion.fuse"]
    assert [tl.work(stage.program) for stage in explained.passes] == [118, 118, 72]
    assert explained.primal.cost.work + explained.linear.cost.work <= 72 + 3 + 5  # a mask and a choice in both
    assert str(explained.passes).startswith("as written\n{ lambda")


def test_passes_of_what_is_simple_already():
    assert [stage.name for stage in tl.explain(running, THREE).passes] == ["as written"]


def test_products_are_formulas():
    matrix, vector, stack = tnp.ones((2, 2)), tnp.ones(2), tnp.ones((2, 2, 2))
    text = str(tl.explain(lambda a, b, c: tnp.sum(tnp.sin(a @ b) * (c @ b)), matrix, vector, stack))
    for formula in (r"= \S+ @ \S+ ", r"= outer \S+ \S+ ", r"= dot_general\["):
        assert re.search(formula, text)
    assert re.search(r"= \S+\.T @ \S+ ", str(tl.explain(lambda x, w: tnp.sum(tnp.sin(x @ w)), matrix, matrix)))
