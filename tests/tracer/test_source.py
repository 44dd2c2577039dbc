"""Places in users' programs."""

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer import source
from tests.messages import place, short

TWIN = "import tapeless.numpy as tnp\n\ndef f(x):\n    return tnp.sin(x)\n"


def f(x):
    y = (
        tnp.sin(x)  # the line of the call, not of the statement
        * 2
    )
    return tnp.sum(y)


def test_equations_know_their_lines():
    places = {str(eqn.primitive): eqn.source.describe() for eqn in tl.make_jaxpr(f)(1.0).eqns}
    assert places["sin"] == place(f, "tnp.sin(x)")


def test_derivatives_belong_to_the_line_they_differentiate():
    for derivative in (tl.grad(f), tl.grad(tl.jit(f)), tl.jit(tl.grad(tl.jit(f)))):
        text = tl.jit(derivative).lower(1.0).as_text()
        assert f'{short(__file__)}":{int(place(f, "tnp.sin").split(":")[1].split()[0])}:0' in text


def test_equal_code_of_two_files_is_told_apart():
    functions = []
    for name in ("one.py", "two.py"):
        namespace = {}
        exec(compile(TWIN, name, "exec"), namespace)
        functions.append(namespace["f"])
    assert functions[0].__code__ == functions[1].__code__
    places = [str(tl.make_jaxpr(g)(1.0).eqns[0].source) for g in functions]
    assert places == ["one.py:4", "two.py:4"]


def test_a_place_that_is_set_goes_first():
    here = source.current()
    assert source.at(here, tl.make_jaxpr(f), 1.0).eqns[0].source is here
    assert source.override.get() is None


def test_code_without_a_file():
    namespace = {}
    exec("def g(x):\n    return -x", {}, namespace)
    eqn = tl.make_jaxpr(lambda x: namespace["g"](x))(1.0).eqns[0]
    assert eqn.source.describe() == "<string>:2 (g)"
