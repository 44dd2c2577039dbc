"""Places in users' programs."""

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.tracer import source
from tests.messages import place, raises, short

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
        text = tl.jit(derivative).lower(1.0).as_text(debug_info=True)
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


def test_named_scopes_are_in_the_text_of_the_program():
    @tl.named_scope("outer")
    def named(x):
        with tl.named_scope('in"ner'):
            y = tnp.sin(x)
        return tl.named_call(tnp.cos, name="cosine")(y)

    closed = tl.make_jaxpr(named)(1.0)
    assert [eqn.source.scope for eqn in closed.eqns] == ['outer/in"ner', "outer/cosine"]
    assert [eqn.source_info.name_stack for eqn in closed.eqns] == ['outer/in"ner', "outer/cosine"]
    lowered = tl.jit(named).lower(1.0)
    assert 'loc("outer/in\'ner"(#loc' in lowered.as_text(debug_info=True)
    assert 'op_name="outer/cosine"' in lowered.compile().as_text()
    with raises(TypeError, "named_scope: the name must be a string, not 3."), tl.named_scope(3):
        pass


def test_excluded_files_are_not_the_users():
    namespace = {}
    exec(compile("import tapeless.numpy as tnp\ndef lib(x):\n    return tnp.sin(x)\n", "library.py", "exec"), namespace)
    assert str(tl.make_jaxpr(namespace["lib"])(1.0).eqns[0].source) == "library.py:3"
    source.register_exclusion("library.py")
    try:
        closed = tl.make_jaxpr(lambda x: namespace["lib"](x))(1.0)
        assert closed.eqns[0].source.file == __file__
    finally:
        source._excluded.clear()
        source._ours.clear()
