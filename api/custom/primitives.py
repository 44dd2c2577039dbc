"""`extend.core.Primitive`: operations that a library defines, with a rule for each transformation, as JAX has them.

The rules of one are given to it (`def_impl`, `def_abstract_eval`) and to the tables of `tapeless.extend.interpreters`.
"""

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from tapeless.interpreters import jvp, transpose, vmap
from tapeless.interpreters.analysis import linearity
from tapeless.interpreters.transpose import is_linear
from tapeless.interpreters.zero import Zero, zero_of
from tapeless.lowering import dispatch
from tapeless.tracer import core, dtypes
from tapeless.tracer.caches import Recent
from tapeless.tracer.errors import InternalError
from tapeless.tracer.jaxpr import Equation
from tapeless.tracer.rule_arguments import as_arguments
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import aval_of
from tapeless.tracer.user_primitives import DEFINED_BY, Rule, UserPrimitive, check_types

Translation = Callable[[dict[str, Any]], dict[str, Any]]
Function = TypeVar("Function", bound=Callable[..., Any])


class LibraryPrimitive:
    """An operation: a name, and rules that are Python functions.

    `multiple_results`, set after it is made: does it give a list of arrays, and do its rules, rather than one array?
    Equal to what an equation of a program has as its primitive, so that either finds the other in a table.

    >>> twice_p = LibraryPrimitive("twice")
    >>> _ = twice_p.def_impl(lambda x: 2 * x)
    >>> twice_p.bind(3)
    Array(6, dtype=int32, weak_type=True)
    """

    def __init__(self, name: str) -> None:
        defined = UserPrimitive(name)
        install(defined)
        self.operation: core.Primitive = defined

    @property
    def name(self) -> str:
        """Name of the primitive, with which programs are printed."""
        return self.operation.name

    @property
    def multiple_results(self) -> bool:
        """Tell whether the primitive gives a list of arrays, rather than one array."""
        return self._gives_several()

    @multiple_results.setter
    def multiple_results(self, value: bool) -> None:
        find_operation(self).several = value

    def _gives_several(self) -> bool:
        return find_operation(self).several

    def bind(self, /, *args: Any, **params: Any) -> Any:
        """Apply the primitive to arrays under the current transformation; rules get `params` by name.

        Returns: an array, or a list of them if it has `multiple_results`.
        Raises: TypeError if an argument is no array; NotImplementedError if a rule is missing.
        """
        for x in args:
            aval_of(x)
        outs = self.operation.apply(*args, **params)
        return list(outs) if self.multiple_results else outs[0]

    def bind_with_trace(self, trace: core.Trace, args: Sequence[Any], avals: Any, params: dict[str, Any], /) -> Any:
        """Apply the primitive as `bind` does, under `trace`. `avals`, the types of `args`, are not looked at."""
        return core.under(trace, self.bind, *args, **params)

    def def_impl(self, impl: Function) -> Function:
        """Define `impl(*arrays, **params)`, which computes it outside of `jit`. Returns: `impl`."""
        operation = find_operation(self)
        operation.rules["impl"] = impl
        dispatch.inline.pop(operation, None)
        dispatch.inline[operation] = lambda *args, **params: operation.flat("impl", impl(*as_arguments(args), **params))
        return impl

    def def_abstract_eval(self, abstract_eval: Function) -> Function:
        """Define `abstract_eval(*avals, **params)`: ShapedArrays of the operands -> ShapedArrays of the results.

        Returns: `abstract_eval`.
        """
        find_operation(self).rules["abstract_eval"] = abstract_eval
        return abstract_eval

    def def_effectful_abstract_eval(self, effectful_abstract_eval: Function) -> Function:
        """Define `effectful_abstract_eval(*avals, **params)`: types of the operands -> those of the results, effects.

        Returns: `effectful_abstract_eval`.
        Raises: NotImplementedError when it is applied, if there are effects: equations would not keep their order.
        """

        def abstract_eval(*avals: Any, **params: Any) -> Any:
            types, effects = effectful_abstract_eval(*avals, **params)
            if effects:
                raise NotImplementedError(
                    f"{self.name}: its abstract_eval rule names effects, {set(effects)}, which programs do not keep.\n"
                    "  Call the host by io_callback, which has an effect."
                )
            return types

        self.def_abstract_eval(abstract_eval)
        return effectful_abstract_eval

    def get_bind_params(self, params: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the functions and the params that `bind` takes for an equation with `params`: none, and these."""
        return [], params

    @property
    def impl(self) -> Callable[..., Any]:
        """The function that computes it outside of `jit`. Raises: NotImplementedError if there is none."""
        return find_operation(self).rule("impl")

    def abstract_eval(self, /, *avals: Any, **params: Any) -> tuple[Any, frozenset[str]]:
        """Compute the type of the result, or a list of types if it has `multiple_results`, and name its effect."""
        types, effect = core.Primitive.abstract_eval(self.operation, *avals, **params)
        return list(types) if self.multiple_results else types[0], effect

    def __eq__(self, other: object) -> bool:
        return self.operation is (other.operation if isinstance(other, LibraryPrimitive) else other)

    def __hash__(self) -> int:
        return hash(self.operation)

    def __repr__(self) -> str:
        return self.name


def _same(params: dict[str, Any]) -> dict[str, Any]:
    return params


class OwnPrimitive(LibraryPrimitive):
    """A primitive of ours, by which a library finds equations in programs. It has its rules, and takes no others.

    It is equal to the primitive of these equations, and not the same object. They have the parameters that they have
    here; `ours` is JAX's parameters -> these, for `bind` and for rules that are looked up, and `theirs` the inverse,
    for traces of a library's own.
    """

    def __init__(
        self,
        operation: core.Primitive,
        multiple_results: bool,
        ours: Translation = _same,
        theirs: Translation = _same,
    ) -> None:
        self.operation: core.Primitive = operation
        self._multiple = multiple_results
        self.ours: Translation = ours
        self.theirs: Translation = theirs

    def _gives_several(self) -> bool:
        return self._multiple

    def bind(self, /, *args: Any, **params: Any) -> Any:
        return super().bind(*args, **self.ours(params))

    @property
    def impl(self) -> Callable[..., Any]:
        """The function that computes it for known values, even while something is being traced."""
        return partial(core.under, core.bottom_trace(), self.bind)


class FunctionPrimitive(OwnPrimitive):
    """A function by the name of a primitive of JAX's, for libraries that bind it: `function(*arrays, **JAX's params)`.

    If there is a primitive of ours by that name, with other parameters or results, it is equal to that, and finds its
    equations. Otherwise no equation of any program is of it: those are equations of what the function is made of.
    """

    def __init__(self, name: str, function: Callable[..., Any], multiple_results: bool) -> None:
        ours = next((p for p in core.all_primitives() if p.name == name), None)
        super().__init__(ours or core.Primitive(name, _types_of_none, registered=False), multiple_results)
        self.function: Final = function

    def bind(self, /, *args: Any, **params: Any) -> Any:
        found = self.function(*args, **params)
        return list(found) if self.multiple_results else found


def _types_of_none(*avals: Any, **params: Any) -> Any:
    raise InternalError("no equation is of a function")


def find_operation(primitive: Any) -> UserPrimitive:
    """Find the operation behind a `LibraryPrimitive`, or behind the primitive of an equation.

    Raises: TypeError if it is ours, whose rules are not changed, or no primitive.
    """
    operation = primitive.operation if isinstance(primitive, LibraryPrimitive) else primitive
    if isinstance(operation, UserPrimitive):
        return operation
    if isinstance(operation, core.Primitive):
        raise TypeError(f"{operation} is a primitive of Tapeless, with rules of its own, which cannot be changed.")
    raise TypeError(f"expected a Primitive, not {primitive!r}.")


class Registry(MutableMapping[Any, Rule]):
    """The rules of one kind, of all primitives that libraries define: a table kept by the primitives themselves.

    Args:
      adapt: makes the stored rule from the given one.
      own: finds the rule of a primitive of ours, in JAX's conventions; None if such are not shown.
    """

    def __init__(
        self,
        kind: str,
        adapt: Callable[[UserPrimitive, Rule], Rule] | None = None,
        own: Callable[[OwnPrimitive], Rule] | None = None,
    ) -> None:
        self._kind, self._adapt, self._own = kind, adapt, own

    def __setitem__(self, primitive: Any, rule: Rule) -> None:
        operation = find_operation(primitive)
        operation.rules[self._kind] = self._adapt(operation, rule) if self._adapt else rule

    def __getitem__(self, primitive: Any) -> Rule:
        if self._own and isinstance(primitive, OwnPrimitive):
            return self._own(primitive)
        return find_operation(primitive).rules[self._kind]

    def __delitem__(self, primitive: Any) -> None:
        del find_operation(primitive).rules[self._kind]

    def __iter__(self) -> Iterator[Any]:
        return (p for p in installed() if self._kind in p.rules)

    def __len__(self) -> int:
        return len(list(iter(self)))


def apply_primitive(prim: Any, /, *args: Any, **params: Any) -> Any:
    """Compute a primitive on concrete arrays by its lowering rule, compiled for their types: what an `impl` may be.

    Returns: an array, or a list of them if it has `multiple_results`.
    Raises: NotImplementedError if it has no lowering rule; UnexpectedTracerError for traced arrays.

    >>> import tapeless as tl
    >>> twice_p = tl.extend.core.Primitive("twice")
    >>> twice = tl.extend.mlir.lower_fun(lambda x: 2 * x, multiple_results=False)
    >>> _ = tl.extend.mlir.register_lowering(twice_p, twice)
    >>> _ = twice_p.def_abstract_eval(lambda x: x)
    >>> apply_primitive(twice_p, 3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    operation = find_operation(prim)
    key = (operation, tuple(map(aval_of, args)), tuple(params.items()))
    program = _programs.get(key) or _programs.recall(key)
    if program is None:
        program = _programs.enter(key, _program(operation, key[1], params))
    outs = dispatch.run(program, args)
    return list(outs) if operation.several else outs[0]


def _program(operation: UserPrimitive, avals: Sequence[Any], params: dict[str, Any]) -> Any:
    """Make a program of one equation."""
    return trace_to_jaxpr(lambda *args: operation.apply(*args, **params), avals, function=operation)[0]


_programs: Recent[Any, Any] = Recent(256)

# ---- their entries in the tables -----------------------------------------------------------------------------
# Tangents and cotangents are `Zero` where they are zero, linear operands of a transpose rule are `Linear`, as
# everywhere here; a primitive with one result has bare arrays in the place of tuples.


def install(primitive: UserPrimitive) -> None:
    """Put a primitive into the tables: its rules are looked up when they are needed."""
    jvp.rules[primitive] = partial(_jvp, primitive)
    transpose.rules[primitive] = partial(_transpose, primitive)
    vmap.rules[primitive] = partial(_vmap, primitive)
    linearity.rules[primitive] = _linear


def installed() -> list[UserPrimitive]:
    """List the primitives that were installed."""
    return [p for p in vmap.rules if isinstance(p, UserPrimitive)]


def _jvp(primitive: UserPrimitive, primals: Sequence[Any], tangents: Sequence[Any], /, **params: Any) -> Any:
    given = tuple(as_arguments(primals)), tuple(as_arguments(tangents))
    values, pushed = primitive.rule("jvp")(*given, **params)
    outs, out_tangents = primitive.flat("jvp", values), primitive.flat("jvp", pushed)
    ts = [t if type(t) is Zero else _tangent(y, t) for y, t in zip(outs, out_tangents, strict=True)]
    have = [t.aval if type(t) is Zero else aval_of(t) for t in ts]
    check_types(primitive, "jvp", "as tangents of", have, [aval_of(y).tangent() for y in outs])
    return outs, tuple(ts)


def _tangent(y: Any, t: Any) -> Any:
    """A tangent that a rule gives: that of an integer is zero."""
    return zero_of(y) if aval_of(y).tangent().dtype == dtypes.float0 else t


def _transpose(primitive: UserPrimitive, cts: Sequence[Any], /, *args: Any, **params: Any) -> Any:
    if "transpose" not in primitive.rules:
        why = f"it has none. Define it by {DEFINED_BY['transpose']}"
        raise transpose.not_linear(primitive, why)
    rule = primitive.rule("transpose")
    given = as_arguments(cts)
    pulled = rule(given if primitive.several else given[0], *as_arguments(args), **params)
    if pulled is Zero:  # the class stands for zeros of all operands
        pulled = [None] * len(args)
    if not isinstance(pulled, (tuple, list)) or len(pulled) != len(args):
        raise TypeError(f"{primitive}: its transpose rule gave {pulled!r}, not one cotangent for each operand.")
    cotangents = [_cotangent(x, ct) for x, ct in zip(args, pulled)]
    given = [(aval_of(ct), x.aval) for x, ct in zip(args, cotangents) if ct is not None and type(ct) is not Zero]
    check_types(primitive, "transpose", "as cotangents of", [a for a, _ in given], [a for _, a in given])
    return tuple(cotangents)


def _cotangent(x: Any, ct: Any) -> Any:
    if not is_linear(x):
        return None
    return Zero(x.aval) if ct is None or type(ct) is Zero else ct


def _vmap(primitive: UserPrimitive, size: int, args: Sequence[Any], dims: Sequence[Any], /, **params: Any) -> Any:
    given = tuple(as_arguments(args))
    outs, out_dims = primitive.rule("batching")(size, vmap.axis_name(), given, tuple(dims), **params)
    values, places = primitive.flat("batching", outs), primitive.flat("batching", out_dims)
    if len(values) != len(places):
        raise TypeError(f"{primitive}: its batching rule gave {len(values)} results, and axes of {len(places)}.")
    return values, [_place(primitive, x, d, size) for x, d in zip(values, places)]


def _place(primitive: UserPrimitive, x: Any, d: Any, size: int) -> int | None:
    """Count the position of a mapped axis from the front. Raises: TypeError if there is no axis of that size."""
    if d is None:
        return None
    shape = aval_of(x).shape
    if not isinstance(d, int) or not -len(shape) <= d < len(shape) or shape[d] != size:
        raise TypeError(f"{primitive}: its batching rule says that {size} examples are along axis {d!r} of {shape}.")
    return d % len(shape)


def _linear(check: linearity.Check, eqn: Equation, facts: linearity.Facts) -> linearity.Facts:
    """Check a primitive of a library: it is linear in the operands that it says, and else in none.

    In a program built by a transform, it is linear in the marked operands: its rules applied it to tangents.
    """
    primitive = eqn.primitive
    assert isinstance(primitive, UserPrimitive)
    sets = primitive.linear_in(len(eqn.invars))
    if check.trusting and sets is None:
        marked = [i for i, v in enumerate(eqn.invars) if v.linear]
        return (check.jointly(eqn, facts, marked),) * len(eqn.outvars)
    advice = f"\n  If it is linear in some operands, say so by {DEFINED_BY['linear']}." if sets is None else ""
    return (check.of_sets(eqn, facts, sets or (), advice),) * len(eqn.outvars)
