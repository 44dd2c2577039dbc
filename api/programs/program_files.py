"""Files of gradient programs: their text and constants, as a tree of `tl.save`, whose header says what it is."""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from tapeless.differentiate.equivalence import form_of
from tapeless.programs.loading import GRADIENT_PROGRAM
from tapeless.programs.program_parsing import read_with_known_objects
from tapeless.saving import tree_nodes
from tapeless.saving.safetensors_layout import refuse
from tapeless.saving.trees import write_tree
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.errors import ProgramTextError
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs
from tapeless.tracer.printing import jaxpr_text
from tapeless.tracer.types import ShapedArray, aval_of

NAMES = ("source", "bulk", "differentiated", "gradient", "joint")
NEEDED = ("gradient", "joint")  # to evaluate


class StoredProgram:
    """A program with constants, or its text, which is read when the program is asked for."""

    def __init__(self, text: str, consts: Sequence[Any]) -> None:
        self.text: str = text
        self.consts: tuple[Any, ...] = tuple(consts)

    @classmethod
    def of(cls, program: ClosedJaxpr) -> "StoredProgram":
        stored = cls(str(program), program.consts)
        stored.__dict__["program"] = program
        return stored

    @cached_property
    def program(self) -> ClosedJaxpr:
        return self.read("load", {})

    def read(self, who: str, rules: dict[str, Any]) -> ClosedJaxpr:
        """Read the text; functions with rules are these, by name, others without their rule.

        Raises: ProgramTextError where it is not that of a program; ValueError for constants of other types.
        """
        found = read_with_known_objects(who, self.text, rules, UnsavedRule)
        types = [aval_of(x) for x in self.consts]
        wanted = found.jaxpr.in_avals[: found.n_constants]
        if [(x.shape, x.dtype) for x in types] != [(x.shape, x.dtype) for x in wanted]:
            raise ValueError(f"its constants are {', '.join(map(str, types))}, and not {', '.join(map(str, wanted))}")
        return ClosedJaxpr(found.jaxpr, self.consts)


class UnsavedRule:
    """A function with a derivative of its own, of which a file has the program and not the rule."""

    def __init__(self, name: str) -> None:
        self.__name__: str = name

    def rule(self, primals: Any, tangents: Any) -> NoReturn:
        raise NotImplementedError(
            f"load: the derivative of {self.__name__} has a rule, a Python function, which files do not hold.\n"
            "  Differentiate the function itself, where it is defined."
        )


class Parts:
    """The programs of a `GradientProgram` by name, the structures of arguments and results, whose leaves are numbers,
    and the names of the function and its arguments."""

    def __init__(
        self, programs: dict[str, StoredProgram], arguments: Any, results: Any, function: str, names: tuple[str, ...]
    ) -> None:
        self.programs: dict[str, StoredProgram] = programs
        self.arguments: Any = arguments
        self.results: Any = results
        self.function: str = function
        self.names: tuple[str, ...] = names

    def program(self, name: str) -> ClosedJaxpr:
        return self.programs[name].program

    def text(self, name: str) -> str:
        return self.programs[name].text


def write(who: str, path: str | os.PathLike[str], parts: Parts) -> None:
    """Write the parts to a file, after reading their text as a reader will."""
    for name in NEEDED:
        _check_readable(who, name, parts.programs[name])
    for what, tree in (("arguments", parts.arguments), ("results", parts.results)):
        _check_no_class(who, what, tree)
    consts = list({id(x): x for name in NAMES for x in parts.programs[name].consts}.values())
    numbers = {id(x): k for k, x in enumerate(consts)}
    programs = {
        name: {"text": stored.text, "consts": [numbers[id(x)] for x in stored.consts]}
        for name, stored in parts.programs.items()
    }
    structures = {"arguments": parts.arguments, "results": parts.results}
    tree = {"programs": programs, "consts": consts, **structures, "function": parts.function, "names": parts.names}
    write_tree(path, tree, GRADIENT_PROGRAM)


def _check_readable(who: str, name: str, stored: StoredProgram) -> None:
    """Raise TypeError, naming what it is, if the text of a program does not say all of it."""
    try:
        again = stored.read(who, _rules_in(stored.program.jaxpr))
    except ProgramTextError as error:
        raise TypeError(f"{who}: the program {name!r} cannot be saved.\n  {error}") from error
    if form_of(again.jaxpr) is not form_of(stored.program.jaxpr):
        raise TypeError(
            f"{who}: the program {name!r} has a param that its text does not say: it was read back as another one.\n"
            f"{jaxpr_text(stored.program.jaxpr)}"
        )


def _rules_in(jaxpr: Jaxpr) -> dict[str, Any]:
    """Find the functions with rules in a program, by name."""
    found: dict[str, Any] = {}
    for eqn in jaxpr.eqns:
        if "custom" in eqn.own_params:
            found[eqn.params["custom"].__name__] = eqn.params["custom"]
        for inner in subjaxprs(eqn.params):
            found |= _rules_in(inner)
    return found


def _check_no_class(who: str, what: str, tree: Any) -> None:
    for part in tree_nodes.parts(tree):
        if part.node and part.node[0] == "class":
            name = type(part.value).__name__
            raise TypeError(
                f"{who}: there is {pytree.article_of(name)} {name} in the {what}, "
                "and files do not say how to make one.\n"
                "  Give the function tuples, lists and dicts."
            )


def parts_of(path: Path, tree: Any) -> Parts:
    """Return the parts in the tree of a file. Raises: ValueError naming the file and the reason if it lacks them."""
    try:
        programs = {
            name: StoredProgram(_text(tree["programs"][name]["text"]), _consts(tree, tree["programs"][name]["consts"]))
            for name in NAMES
        }
        parts = Parts(programs, tree["arguments"], tree["results"], _text(tree["function"]), tree["names"])
        _check_types(parts)
        return parts
    except (KeyError, IndexError, TypeError) as error:
        refuse(path, f"it should hold a gradient program, and has not the parts of one: {error!r}")
    except ValueError as error:
        refuse(path, f"a program in it cannot be read: {error}")


def _check_types(parts: Parts) -> None:
    """Raise ValueError unless the programs take and give what the structures say."""
    gradient, joint = (parts.program(name) for name in NEEDED)
    n, m = (_count(tree) for tree in (parts.arguments, parts.results))
    xs, rets = joint.in_avals[:n], joint.out_avals[:m]
    wanted = (*xs, *filter(is_inexact, rets)), (*rets, *filter(is_inexact, xs))
    found = joint.in_avals, joint.out_avals
    if type(parts.arguments) is not tuple or found != wanted or len(xs) < n or len(rets) < m:
        raise ValueError("it does not take and give arguments and results of the structures that the file says")
    if type(parts.names) is not tuple or [*map(type, parts.names)] != [str] * len(parts.arguments):
        raise ValueError(f"the names of its arguments are {parts.names!r}")
    if (gradient.in_avals, gradient.out_avals) != (joint.in_avals, joint.out_avals[m:]):
        raise ValueError("the program 'gradient' is not of the types of 'joint'")


def _count(tree: Any) -> int:
    leaves = pytree.leaves(tree)
    if leaves != [*range(len(leaves))] or any(type(x) is not int for x in leaves):
        raise ValueError(f"the leaves of a structure are {leaves!r}, not numbers from 0 on")
    return len(leaves)


def is_inexact(aval: ShapedArray) -> bool:
    """Tell whether there are tangents of a type."""
    return dtypes.is_inexact(aval.dtype)


def _text(x: Any) -> str:
    if not isinstance(x, str):
        raise TypeError(f"a text is a {type(x).__name__}")
    return x


def _consts(tree: Any, numbers: Sequence[int]) -> list[Any]:
    if any(type(k) is not int or k < 0 for k in numbers):
        raise TypeError(f"numbers of constants are {numbers!r}")
    return [tree["consts"][k] for k in numbers]
