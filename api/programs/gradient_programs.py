"""Gradients as programs: differentiated once, evaluated often, printed, saved and loaded without the Python function.

A `GradientProgram` is four programs of one function. They are text in a file, with their constants. A loaded
program computes what a function with a rule of its own computes, and refuses to be differentiated there: the rule is
Python.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tapeless.arguments.argument_checks import check_arrays
from tapeless.arguments.names import names_by_position
from tapeless.compile.jit import tracing_of
from tapeless.differentiate.autodiff import vjp
from tapeless.interpreters.jvp import jvp_jaxpr
from tapeless.interpreters.simplifications.common_subexpressions import without_common_subexpressions
from tapeless.interpreters.simplify import simplify_program
from tapeless.lowering import emit
from tapeless.programs import program_files
from tapeless.programs.program_files import Parts, StoredProgram, is_inexact
from tapeless.tracer import core, dtypes, pytree
from tapeless.tracer import numpy as tnp
from tapeless.tracer.flags import where_true
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from tapeless.tracer.passes import dead_code
from tapeless.tracer.primitives import call
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of


class GradientProgram:
    """The gradient of a function as programs, of the types that it was made for; prints them.

    source: xs -> results, as the function was traced.
    bulk: the same, simplified, as it is compiled.
    differentiated: xs ; dxs -> results ; their tangents, of what is inexact.
    gradient: xs, dret -> cotangents of the inexact xs, dret being those of the inexact results.
    joint: xs, dret -> results, cotangents.
    Called with arguments it computes the gradient. Errors and the printed form name arguments as the function does.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.arguments: Any = parts.arguments  # trees, with numbers for leaves
        self.results: Any = parts.results
        self.function: str = parts.function  # its name, and those of its arguments
        self.names: tuple[str, ...] = parts.names

    @property
    def source(self) -> ClosedJaxpr:
        return self._parts.program("source")

    @property
    def bulk(self) -> ClosedJaxpr:
        return self._parts.program("bulk")

    @property
    def differentiated(self) -> ClosedJaxpr:
        return self._parts.program("differentiated")

    @property
    def gradient(self) -> ClosedJaxpr:
        return self._parts.program("gradient")

    @property
    def joint(self) -> ClosedJaxpr:
        return self._parts.program("joint")

    def __call__(self, *xs: Any, dret: Any = None) -> Any:
        """Compute the gradient at `xs`: a tuple with one per argument; for a single argument, its gradient alone.

        Args:
          xs: arguments of the types that the program was made for, or numbers.
          dret: cotangent of the results, in their structure; 1 if None, for a function with one real result.
        Returns: the gradient in the structure of the arguments, float0 zeros where these are no inexact numbers.
        Raises: TypeError naming the leaf, if the structure, a shape or a dtype is another.
        """
        flat, cts = self._flat(xs, dret)
        return self._as_arguments(_run(self.gradient, [*flat, *cts]))

    def value_and_gradient(self, *xs: Any, dret: Any = None) -> tuple[Any, Any]:
        """Compute the results of the function at `xs` and the gradient, by one program; arguments are as of a call."""
        flat, cts = self._flat(xs, dret)
        found = _run(self.joint, [*flat, *cts])
        n = len(self._result_types)
        return pytree.unflatten(pytree.structure(self.results), found[:n]), self._as_arguments(found[n:])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the programs and their constants to a file, which `tl.load` reads in any process.

        Raises: TypeError naming it, if `gradient` has a Python object in it, such as a callback, or if there is a
          registered class among the arguments or results; OSError if the file cannot be written.
        """
        program_files.write("save", path, self._parts)

    def __str__(self) -> str:
        names = ("source", "bulk", "differentiated", "gradient")
        return "\n\n".join([self._heading(), *[f"{name}\n{self._parts.text(name)}" for name in names]])

    __repr__ = __str__

    def _heading(self) -> str:
        """Write what the inputs and outputs of `source` are: `loss(params['w'], x) -> ret`."""
        trees = zip(self.names, self.arguments, strict=True)
        given = [leaf for name, tree in trees for leaf in _path_names(name, tree)]
        return f"{self.function}({', '.join(given)}) -> {', '.join(_path_names('ret', self.results))}"

    # ---- flat

    @property
    def _types(self) -> tuple[ShapedArray, ...]:
        return self.joint.in_avals

    @property
    def _result_types(self) -> tuple[ShapedArray, ...]:
        return self.joint.out_avals[: len(pytree.leaves(self.results))]

    def _flat(self, xs: Sequence[Any], dret: Any) -> tuple[list[Any], list[Any]]:
        if len(xs) != len(self.names):
            s = "s" * (len(self.names) > 1)
            takes = f"{self.function} takes {len(self.names)} argument{s}, {', '.join(self.names)}"
            raise TypeError(f"gradient_program: {takes}; here there {'is' if len(xs) == 1 else 'are'} {len(xs)}.")
        flat, types = list[Any](), iter(self._types)
        for name, x, tree in zip(self.names, xs, self.arguments, strict=True):
            of_leaves = [next(types) for _ in pytree.leaves(tree)]
            flat += _matching(f"argument {name}{{}} of {self.function}", x, tree, of_leaves)
        if dret is None:
            return flat, [self._one()]
        results = self._result_types
        cts = _matching("dret{}", dret, self.results, [None if not is_inexact(aval) else aval for aval in results])
        return flat, where_true(list(map(is_inexact, results)), cts)

    def _one(self) -> Any:
        types = self._result_types
        if len(types) != 1 or types[0].shape or not dtypes.is_float(types[0].dtype):
            listed = ", ".join(map(str, types))
            raise TypeError(f"gradient_program: the result is {listed}, not one real number: pass its cotangent, dret.")
        return tnp.ones((), types[0].dtype)

    def _as_arguments(self, found: Sequence[Any]) -> Any:
        left, n = iter(found), len(pytree.leaves(self.arguments))
        leaves = [next(left) if is_inexact(a) else np.zeros(a.shape, dtypes.float0) for a in self._types[:n]]
        tree = pytree.unflatten(pytree.structure(self.arguments), leaves)
        return tree[0] if len(tree) == 1 else tree


def _path_names(name: str, tree: Any) -> list[str]:
    """Name the leaves of a tree that has a name: `params['w']`."""
    return [f"{name}{pytree.keystr(path)}" for path, _ in pytree.leaves_with_path(tree)]


def of_tree(path: Path, tree: Any) -> GradientProgram:
    """Make the gradient program that a file holds the tree of. Raises: ValueError if it holds another one."""
    return GradientProgram(program_files.parts_of(path, tree))


def gradient_program(fun: Any, *args: Any) -> GradientProgram:
    """Derive the gradient of a function as a program, which can be evaluated and saved without the function.

    Args:
      args: arguments of `fun`, or their types (`tl.ShapeDtypeStruct`); it is differentiated in all that are inexact.
    Returns: a `GradientProgram`, with `.source`, `.bulk`, `.differentiated` and `.gradient`, which print; it is called
      with arguments of these types, and is saved by `.save(path)` for `tl.load`.
    Raises: TypeError if `fun` is no function, an argument no array, none of them inexact, or no result; whatever
      tracing or differentiating `fun` raises.
    Source: the construction is that of reverse mode in three programs, Radul et al. 2023.

    >>> p = gradient_program(lambda x: x * x, 3.0)
    >>> p(3.0), p(4.0)
    (Array(6., dtype=float32, weak_type=True), Array(8., dtype=float32, weak_type=True))
    >>> p.gradient
    { lambda a:~f32[] b:~f32[]. let
        c:~f32[] = mul b a
        d:~f32[] = add c c
      in d }
    """
    traced = tracing_of("gradient_program", fun).trace(*args)
    source = traced.jaxpr
    if not any(map(is_inexact, source.in_avals)) or not any(map(is_inexact, source.out_avals)):
        raise TypeError(
            "gradient_program: an argument and a result must be floating point or complex, and they are "
            f"{', '.join(map(str, source.in_avals))} and {', '.join(map(str, source.out_avals))}."
        )
    joint = _joint(source)
    n_results = len(source.out_avals)
    gradient = joint.jaxpr.replace(outvars=joint.jaxpr.outvars[n_results:])
    programs = {
        "source": source,
        "bulk": ClosedJaxpr(_compiled(source.jaxpr), source.consts),
        "differentiated": _differentiated(source),
        "gradient": _without_unread(ClosedJaxpr(_merged(gradient), joint.consts)),
        "joint": _without_unread(ClosedJaxpr(_merged(joint.jaxpr), joint.consts)),
    }
    (arguments, _), results = (
        pytree.unflatten(tree, range(tree.num_leaves)) for tree in (traced.in_tree, traced.out_tree)
    )
    stored = {name: StoredProgram.of(p) for name, p in programs.items()}
    function = core.describe_function(fun).partition(" at ")[0]
    return GradientProgram(Parts(stored, arguments, results, function, names_by_position(fun, len(args))))


def _joint(source: ClosedJaxpr) -> ClosedJaxpr:
    """Make the program xs, dret -> results, cotangents."""
    n_constants, n = len(source.consts), len(source.in_avals)
    inexact = list(map(is_inexact, source.in_avals))
    ct_types = [aval for aval in source.out_avals if is_inexact(aval)]

    def both(*flat: Any) -> list[Any]:
        consts, xs, cts = flat[:n_constants], flat[n_constants : n_constants + n], flat[n_constants + n :]
        others: list[Any] = []

        def of_inexact(*some: Any) -> tuple[list[Any], list[Any]]:
            given = iter(some)
            outs = eval_jaxpr(source.jaxpr, [*consts, *[next(given) if yes else x for yes, x in zip(inexact, xs)]])
            return [y for y in outs if is_inexact(aval_of(y))], list(outs)

        _, pull, others = vjp(of_inexact, *where_true(inexact, xs), has_aux=True)
        return [*others, *pull(list(cts))]

    avals = [*source.jaxpr.in_avals, *ct_types]
    program, outer = trace_to_jaxpr(both, avals, what="gradient_program")
    return ClosedJaxpr(program.replace(name="gradient"), (*outer, *source.consts))


def _differentiated(source: ClosedJaxpr) -> ClosedJaxpr:
    inexact = tuple([k >= len(source.consts) and is_inexact(a) for k, a in enumerate(source.jaxpr.in_avals)])
    program, outer, _ = jvp_jaxpr(source.jaxpr, inexact, tuple(map(is_inexact, source.out_avals)))
    return ClosedJaxpr(simplify_program(program), (*outer, *source.consts))


def _compiled(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program as it is compiled: calls inlined, simplified, without `ein`."""
    for rewrite in emit.passes:
        jaxpr = rewrite(jaxpr)
    return dead_code(jaxpr)


def _merged(jaxpr: Jaxpr) -> Jaxpr:
    """Return the program as it is compiled, without common subexpressions, which XLA would merge."""
    return without_common_subexpressions(_compiled(jaxpr))


def _without_unread(program: ClosedJaxpr) -> ClosedJaxpr:
    """Leave out constants that nothing reads."""
    jaxpr, n = program.jaxpr, len(program.consts)
    read = {v for eqn in jaxpr.eqns for v in eqn.invars} | {*jaxpr.outvars}
    kept = [v in read for v in jaxpr.invars[:n]]
    invars = [*where_true(kept, jaxpr.invars[:n]), *jaxpr.invars[n:]]
    return ClosedJaxpr(jaxpr.replace(invars=invars), where_true(kept, program.consts))


def _run(program: ClosedJaxpr, flat: Sequence[Any]) -> list[Any]:
    return list(call.jit(program.jaxpr, *program.consts, *flat))


def _matching(what: str, given: Any, tree: Any, types: Sequence[ShapedArray | None]) -> list[Any]:
    """Flatten a tree, compared with the one that is expected; None stands for a type of which nothing is asked.

    The path of a leaf goes into the braces of `what`, in messages.
    """
    if pytree.structure(given) != pytree.structure(tree):
        told = pytree.compare(pytree.structure(given), pytree.structure(tree), ("what is given", "the program"))
        here = what.replace("{}", "")
        raise TypeError(f"gradient_program: the structure of {here} is not that which the program takes.{told}")
    check_arrays(f"gradient_program: {what}", given)
    found: list[Any] = []
    for (path, x), aval in zip(pytree.flatten_with_path(given)[0], types, strict=True):
        here = aval_of(x)
        if aval is not None and isinstance(x, (bool, int, float, complex)):
            x = tnp.asarray(x, aval.dtype)
        elif aval is not None and (here.shape, here.dtype) != (aval.shape, aval.dtype):
            leaf = what.replace("{}", pytree.keystr(path))
            raise TypeError(f"gradient_program: {leaf} is {here}, and the program takes {aval}.")
        found.append(x)
    return found
