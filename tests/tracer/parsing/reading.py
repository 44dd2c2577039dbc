"""What the text of a program must say: all of it, so that it is read back as the same program."""

from collections.abc import Iterator
from typing import Any

from tapeless.differentiate.equivalence import form_of
from tapeless.programs.program_parsing import read_with_known_objects
from tapeless.tracer.jaxpr import Jaxpr, subjaxprs
from tapeless.tracer.printing import is_record


def assert_read_back(jaxpr: Jaxpr) -> Jaxpr:
    """The text of a program is read as an equivalent program, with the same text. Returns: that program."""
    text = str(jaxpr)
    found = read_with_known_objects("test", text, objects_of(jaxpr)).jaxpr
    assert str(found) == text
    assert form_of(found) is form_of(jaxpr), text
    return found


def objects_of(jaxpr: Jaxpr) -> dict[str, Any]:
    """The functions among the params of a program, by the names that they are printed by."""
    params = [x for eqn in equations(jaxpr) for x in eqn.params.values()]
    named = {x.__name__: x for x in params if hasattr(x, "__name__") and not is_record(x)}
    return {name: x for name, x in named.items() if "(" not in name}


def equations(jaxpr: Jaxpr) -> Iterator[Any]:
    """The equations of a program, and of those that it carries."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in subjaxprs(eqn.params):
            yield from equations(inner)
