"""The backward rule of one call of a custom_vjp function, as a linear map: run, or written down and transposed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from tapeless.arguments.argument_checks import check_takes
from tapeless.arguments.names import argument_name
from tapeless.custom.boolean_residuals import flags_given_back
from tapeless.custom.closures import closed_over
from tapeless.custom.rule_checks import attempt, check_rule_is_linear, fitting, returned_by
from tapeless.custom.symbolic_zeros import symbolic
from tapeless.interpreters import vmap
from tapeless.interpreters.rules.custom import Pull, ReverseOnlyPull, differentiated_closure
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import dtypes, pytree, source
from tapeless.tracer.core import Tracer
from tapeless.tracer.errors import UnexpectedTracerError
from tapeless.tracer.jaxpr import Jaxpr, Var, effects_of
from tapeless.tracer.primitives.custom import custom_linear
from tapeless.tracer.rule_arguments import as_arguments
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike


class BackwardSignature(NamedTuple):
    """The structures and types that a backward rule takes and gives."""

    residuals: Any  # their structure
    tree: Any  # that of the value
    outs: tuple[ShapedArray, ...]  # types of tangents of the value
    ins: tuple[ShapedArray, ...]  # types of tangents of the differentiable arguments
    some: tuple[bool, ...]  # which of these are differentiated


class Backward:
    """The backward rule of a call (custom_reverse), a `pull` of `custom_linear` that calls the user's function.

    Its residuals are the traced arrays among the arguments without a derivative, then those of the forward rule.
    """

    def __init__(self, call: Any, point: BackwardSignature) -> None:
        self._call, self._point, self._name = call, point, name_of(call.custom.bwd)
        self.__name__: Final = f"transpose_{self._name}"  # that is the map; what is given is its transpose
        self.out_avals: Final = tuple([a for a in point.outs if dtypes.is_inexact(a.dtype)])
        self.unchecked: Final = not call.custom.is_linear

    def check(self, residuals: Sequence[ShapedArray], tangents: Sequence[ShapedArray]) -> None:
        """Accept any types: the rule was made for these."""

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Apply the rule. Raises: TypeError if its result does not fit, or is not linear in the cotangents."""
        found, avals = self._run(residuals, cts), tuple([aval_of(x) for x in residuals])
        self._call.first_time(self._key(avals), lambda: self._check_linear(avals))
        return found

    def forward(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
        """Transpose the rule, traced anew every time as it would be run anew."""
        if self._call.custom.reverse_only:
            raise NotImplementedError(self._call.custom.reverse_only)
        avals = tuple([aval_of(x) for x in residuals])
        program, consts = self.traced(avals)
        self._call.first_time(self._key(avals), lambda: self._check_program(program, consts, len(avals)))
        return Pull(program, len(consts) + len(avals), self._name).forward([*consts, *residuals], tangents)

    def closed(self, avals: tuple[ShapedArray, ...]) -> tuple[tuple[Any, ...], Pull]:
        """Return the arrays that the rule closes over, and the rule as a program."""
        program, consts, _ = self._call.remembering((self._point, avals), lambda: (*self.traced(avals), None))
        self._call.first_time(self._key(avals), lambda: self._check_program(program, consts, len(avals)))
        unchecked = self.unchecked or bool(effects_of(program))
        parts = (program, len(consts) + len(avals), self._name, True, unchecked)
        if self._call.custom.symbolic_zeros:
            return consts, _AskingPull(*parts, self, consts, avals)
        if self._call.custom.reverse_only:
            return consts, ReverseOnlyPull(*parts, refusal=self._call.custom.reverse_only)
        return consts, Pull(*parts)

    def traced(
        self, avals: tuple[ShapedArray, ...], zeros: Sequence[bool] | None = None
    ) -> tuple[Jaxpr, tuple[Any, ...]]:
        """Trace the rule into a program and its constants, without the cotangents flagged in `zeros`."""
        n, is_zero = len(avals), zeros or [False] * len(self.out_avals)

        def flat(*xs: Any) -> list[Any]:
            given = iter(xs[n:])
            cts = [Zero(aval) if zero else next(given) for aval, zero in zip(self.out_avals, is_zero)]
            return list(map(instantiate, self._run(xs[:n], cts)))

        of_cts = [aval for aval, zero in zip(self.out_avals, is_zero) if not zero]
        return trace_to_jaxpr(flat, [*avals, *of_cts], what="custom_vjp", function=self._call.custom.bwd)

    def _run(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        call, given = self._call, iter(cts)
        shown = symbolic if call.custom.symbolic_zeros else instantiate
        outs = as_arguments([shown(next(given) if dtypes.is_inexact(a.dtype) else Zero(a)) for a in self._point.outs])
        held = as_arguments(residuals)
        saved = flags_given_back(pytree.unflatten(self._point.residuals, held[call.n :]))
        args = (*call.nondiff.values(held[: call.n]), saved, pytree.unflatten(self._point.tree, outs))
        with returned_by(call.custom.bwd):
            what = call.nondiff.before("the residuals and the cotangent")
            check_takes(f"custom_vjp: {call.describe_backward()}", call.custom.bwd, len(args), what)
        try:
            pulled = source.at(None, call.custom.bwd, *args)
        except UnexpectedTracerError as error:
            raise self._explained(error) from None
        with returned_by(call.custom.bwd):
            found = _cotangents(call, pulled, self._point.ins)
        return [x for x, yes in zip(found, self._point.some) if yes]

    def _explained(self, error: UnexpectedTracerError) -> Exception:
        """Explain that a backward rule closes over a value being differentiated, and returns no cotangent for it."""
        held = closed_over(self._call.custom.bwd, *self._call.nondiff.static)
        found = next((x for x in held if x.differentiated), None)
        return error if found is None else differentiated_closure(self._call.primitive, self._call.__name__, found)

    def _key(self, avals: tuple[ShapedArray, ...]) -> Any:
        return self._call.key(avals, self._point)

    def _check_linear(self, avals: tuple[ShapedArray, ...]) -> None:
        found = attempt(lambda: self.traced(avals))
        if found is not None:
            program, consts = found
            self._check_program(program, consts, len(avals))

    def _check_program(self, program: Jaxpr, consts: tuple[Any, ...], n: int) -> None:
        if self._call.custom.is_linear:
            what = f"custom_vjp: {self._call.describe_backward()} is not linear in the cotangent"
            check_rule_is_linear(program, consts, n, what, f"{self._call.__name__}.defvjp")


def name_of(f: Any) -> str:
    """Return the name of a user's function."""
    return getattr(f, "__name__", type(f).__name__)


class _Mapping(NamedTuple):
    """One `vmap` of a rule: the name of its axis, how many examples, and the mapped axes of the residuals."""

    name: Any
    size: int
    dims: Sequence[int | None]


@dataclass(frozen=True, eq=False)
class _AskingPull(Pull):
    """The program of a rule with symbolic zeros: it is traced again for each pattern of zeros.

    `avals` are the types of the rule's residuals in one example of the `mappings`, the innermost first.
    """

    rule: Any = None
    consts: tuple[Any, ...] = ()
    avals: tuple[ShapedArray, ...] = ()
    mappings: tuple[_Mapping, ...] = ()

    def backward(self, residuals: Sequence[Any], cts: Sequence[Any]) -> tuple[Any, ...]:
        zeros = [type(ct) is Zero for ct in cts]
        program = self._program(zeros) if any(zeros) else None
        if program is None:
            return super().backward(residuals, cts)
        there = Pull(program, self.n, self.name, False, self.unchecked)
        return custom_linear(there, residuals, [ct for ct in cts if type(ct) is not Zero])

    def batched(self, size: int, dims: Sequence[int | None]) -> "_AskingPull":
        """Batch the map for `size` examples, and remember that it was."""
        mapping = _Mapping(vmap.axis_name(), size, dims)
        return replace(self, jaxpr=_batched(self.jaxpr, mapping), mappings=(*self.mappings, mapping))

    def _program(self, zeros: Sequence[bool]) -> Jaxpr | None:
        """Trace the rule for these zeros; None if it closes over other values than `consts`, or one is traced."""
        if any(isinstance(x, Tracer) for x in self.consts):
            return None
        trace: Any = self.rule.traced
        for name, size, _ in self.mappings:
            trace = partial(vmap.mapping, name, size, trace)
        program, met = trace(self.avals, zeros)
        places = [next((i for i, x in enumerate(self.consts) if _is_same(x, y)), None) for y in met]
        if None in places or len(set(places)) < len(places):
            return None
        found = dict(zip(places, program.invars))
        first = [found.get(i) or Var(aval_of(x)) for i, x in enumerate(self.consts)]
        program = program.replace(invars=[*first, *program.invars[len(met) :]])
        for mapping in self.mappings:
            program = vmap.mapping(mapping.name, mapping.size, _batched, program, mapping)
        return program


def _batched(program: Jaxpr, mapping: _Mapping) -> Jaxpr:
    """Batch the program of a rule; its cotangents are mapped at axis 0."""
    dims = (*mapping.dims, *[0] * (len(program.invars) - len(mapping.dims)))
    return vmap.batch_jaxpr(program, mapping.size, dims)


def _is_same(x: Any, y: Any) -> bool:
    """Compare constants of programs, which hold copies of NumPy arrays."""
    if x is y or not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
        return x is y
    return x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind in "fc")


# ---- what the rule returns -----------------------------------------------------------------------------------


def _cotangents(call: Any, pulled: Any, avals: Sequence[ShapedArray]) -> list[Any]:
    """Collect a cotangent for each leaf of the arguments. Raises: TypeError if the rule's result does not fit."""
    arguments = call.tree.children
    pulled = tuple(pulled) if type(pulled) is list else pulled
    if type(pulled) is not tuple or len(pulled) != len(arguments):
        shown = f"a tuple of {len(pulled)}" if type(pulled) is tuple else repr(pulled)
        raise TypeError(
            f"custom_vjp: {call.describe_backward()} must return a tuple with one cotangent for each differentiable "
            f"argument, {len(arguments)}, but returned {shown}."
        )
    found: list[Any] = []
    types = iter(avals)
    for i, ct, tree in zip(call.nondiff.others(len(arguments)), pulled, arguments):
        found += _of_argument(call, i, ct, tree, [next(types) for _ in range(tree.num_leaves)])
    return found


def _of_argument(call: Any, i: int, ct: Any, tree: Any, avals: Sequence[ShapedArray]) -> list[Any]:
    given, structure = pytree.flatten_with_path(ct, lambda x: x is None)
    places = _places(structure, tree)
    found: list[Any] = [Zero(aval) for aval in avals]
    for (path, x), subtree in zip(given, places or ()):
        place = _only_leaf(subtree)
        if x is not None and place is not None:
            where = f"argument {argument_name(call.custom.fun, i, path)}"
            found[place] = _fitting(call, where, x, avals[place])
        elif x is not None:
            places = None
    if places is None:
        name = argument_name(call.custom.fun, i)
        raise TypeError(
            f"custom_vjp: {call.describe_backward()} must return for argument {name} a pytree of its structure, "
            f"with None where there is no derivative.\n{_misfits(tree, pytree.structure(ct), name)}"
        )
    return found


def _misfits(tree: Any, found: Any, name: str) -> str:
    """Describe where a cotangent differs from its argument, other than by None."""
    differing = [
        each for each in pytree.differences(tree, found) if each.that is None or each.that.kind is not type(None)
    ]
    return pytree.describe_differences(differing, (f"argument {name}", "its cotangent")).rstrip("\n")


def _places(structure: Any, tree: Any) -> list[Any] | None:
    """Match the leaves of `structure` with the leaves, or subtrees, of `tree`; None if they do not match."""
    try:
        return pytree.flatten_up_to(structure, pytree.unflatten(tree, list(range(tree.num_leaves))))
    except ValueError:
        return None


def _only_leaf(subtree: Any) -> int | None:
    """Return the leaf of a subtree with exactly one, else None: an array may stand for such a subtree."""
    leaves = pytree.leaves(subtree)
    return leaves[0] if len(leaves) == 1 else None


def _fitting(call: Any, where: str, ct: Any, want: ShapedArray) -> Any:
    if want.dtype == dtypes.float0:
        return Zero(want)
    who = f"custom_vjp: the cotangent that {call.describe_backward()} returned for {where}"
    if not is_arraylike(ct):
        raise TypeError(f"{who} is {ct!r} of type {type(ct).__name__}, which is not an array.")
    return fitting(ct, want, who, where)
