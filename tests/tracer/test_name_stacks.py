"""Named scopes in transformations: as JAX prints them, in programs and in the text that is compiled."""

import re

import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.tracer import name_stacks

scope = tl.named_scope


def sine(x):
    with scope("foo"):
        return tnp.sin(x) * 2


@tl.jit
def jitted(x):
    with scope("bar"):
        return tnp.sin(x)


def calling(x):
    with scope("foo"):
        return jitted(x)


def scanning(x):
    def body(c, _):
        with scope("bar"):
            return tnp.sin(c), None

    with scope("foo"):
        return lax.scan(body, x, None, 3)[0]


def looping(x):
    with scope("foo"):
        return lax.while_loop(scope("less")(lambda c: c < 5), scope("more")(lambda c: c + 1), x)


def pushed(f):
    return lambda x: tl.jvp(f, (x,), (x,))


# What the stacks of equations are, with those of programs inside behind ">".
CASES = [
    (sine, {"foo"}),
    (tl.vmap(sine), {"vmap(foo)"}),
    (scope("out")(tl.vmap(scope("in")(sine))), {"out/vmap(in)/foo"}),
    (pushed(sine), {"jvp(foo)"}),
    (tl.value_and_grad(sine), {"jvp(foo)", "transpose(jvp(foo))"}),
    (
        tl.grad(tl.grad(sine)),
        {
            "jvp(jvp(foo))",
            "jvp(transpose(jvp(foo)))",
            "transpose(jvp(jvp(foo)))",
            "transpose(jvp(transpose(jvp(foo))))",
        },
    ),
    (tl.vmap(tl.grad(sine)), {"vmap(jvp(foo))", "vmap(transpose(jvp(foo)))"}),
    (scope("out")(tl.grad(sine)), {"out/jvp(foo)", "out/transpose(jvp(foo))"}),
    (calling, {"foo", "> bar"}),
    (tl.vmap(calling), {"vmap(foo)", "> bar"}),
    (tl.vmap(jitted), {"vmap()", "> bar"}),
    (tl.grad(calling), {"jvp(foo)", "transpose(jvp(foo))", "> bar"}),
    (scanning, {"foo", "> bar"}),
    (tl.grad(scanning), {"jvp(foo)", "transpose(jvp(foo))", "> bar"}),
    (looping, {"foo", "> less", "> more"}),
    (pushed(looping), {"jvp(foo)", "> less", "> more"}),
]


def stacks(jaxpr, inside: str = "") -> set[str]:
    found = {inside + eqn.source_info.name_stack for eqn in jaxpr.eqns}
    return found.union(*[stacks(inner, "> ") for eqn in jaxpr.eqns for inner in programs(eqn)])


def programs(eqn):
    return [
        p
        for value in eqn.params.values()
        for p in (value if isinstance(value, tuple) else [value])
        if hasattr(p, "eqns")
    ]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_stacks(case: int):
    f, want = CASES[case]
    batched = "vmap" in str(want)
    assert stacks(tl.make_jaxpr(f)(tnp.ones(2) if batched else 1.0).jaxpr) == want


def op_names(f) -> set[str]:
    text = tl.jit(f).lower(1.0).compile().as_text()
    return {name for name in re.findall(r'op_name="([^"]*)"', text) if "/" in name}


@tl.jit
def doubly(x):
    with scope("bar"):
        return tnp.sin(x)


def test_the_whole_stack_is_in_what_is_compiled():
    """Also of a program that is written once and called in several scopes, where it was traced in the first."""

    def twice(x):
        with scope("foo"):
            y = doubly(x)
        with scope("qux"):
            return doubly(y)

    assert op_names(twice) == {"foo/bar", "qux/bar"}
    assert op_names(tl.grad(twice)) == {"jvp(foo)/bar", "jvp(qux)/bar", "transpose(jvp(foo))/bar"}
    assert op_names(calling) == {"foo/bar"}
    assert op_names(scanning) == {"foo/bar"}
    assert op_names(tl.grad(scanning)) == {"jvp(foo)/bar", "transpose(jvp(foo))/bar"}
    assert op_names(scope("out")(tl.jit(scanning))) == {"out/foo", "out/foo/bar"}
    assert "jvp" not in tl.jit(tl.value_and_grad(tnp.sin)).lower(1.0).as_text(debug_info=True)


def test_transposed_outside():
    """What is pulled back elsewhere, in another scope."""
    _, pull = tl.vjp(scope("here")(sine), 1.0)
    with scope("there"):
        found = stacks(tl.make_jaxpr(pull)(1.0).jaxpr)
    assert found == {"transpose(jvp(here))/foo"}, found


def test_scopes_are_left():
    with pytest.raises(ZeroDivisionError):
        tl.grad(lambda x: x / 0 if 1 / 0 else x)(1.0)
    assert tl.make_jaxpr(tnp.sin)(1.0).eqns[0].source_info.name_stack == ""


def test_a_name_with_a_mark_of_ours_prints():
    for name in ("", "a/b", "/", "x\0", "\1"):
        assert isinstance(name_stacks.format_stack(name_stacks.within("out", name)), str)
