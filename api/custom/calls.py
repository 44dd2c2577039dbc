"""Calls of functions with rules of their own, flat: the common part of custom_jvp and custom_vjp."""

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence, Set
from contextvars import ContextVar
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar, overload

from tapeless.arguments.argument_checks import check_arguments, check_arrays, check_callable
from tapeless.arguments.held_references import check_distinct, holding
from tapeless.arguments.names import bind_instance
from tapeless.custom import closures
from tapeless.custom.rule_checks import attempt, check_values
from tapeless.tracer import core, pytree
from tapeless.tracer.core import Primitive, Tracer
from tapeless.tracer.jaxpr import Jaxpr
from tapeless.tracer.primitives.elementwise import stop_gradient
from tapeless.tracer.rule_arguments import as_arguments
from tapeless.tracer.settings.config import config
from tapeless.tracer.settings.scopes import call_in_scope
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike

P = ParamSpec("P")
R = TypeVar("R")
Rest = ParamSpec("Rest")
_CHECKED_LIMIT = 4096
_checking: ContextVar[Set[tuple[int, Any]]] = ContextVar("checking", default=frozenset())


class RuleCache:
    """Caches of a function with a rule, by types of arguments: its programs, and the checks that it passed."""

    __slots__ = ("checked", "constant", "programs")

    def __init__(self) -> None:
        self.programs: PerTrace[Any, Any] = PerTrace()
        self.checked: set[Any] = set()  # types for which the rule was found to be right
        self.constant: dict[Any, Sequence[int]] = {}  # which tangents a JVP rule makes of nothing


class CustomFunction(Generic[P, R]):
    """A function whose derivative the user gives. `custom_jvp` and `custom_vjp` say how."""

    __name__: str
    primitive: Primitive

    # What `__init__` of the classes does. Type checkers see a `__new__` in its place, with type variables of its own:
    # else pyright does not know the type of `partial(custom_vjp, nondiff_argnums=(0,))(f)`.
    def _define(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int], nondiff_argnames: str | Sequence[str]
    ) -> None:
        check_callable(self.primitive.name, fun)
        self.__name__ = core.function_name(fun)
        functools.update_wrapper(self, fun, updated=())
        self._signature = signature_of(fun)
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums
        names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else nondiff_argnames
        self.fun: Callable[P, R] = fun
        self.nondiff_argnums: tuple[int, ...] = (*numbers, *[self._position(name) for name in names])
        self.cache: RuleCache = RuleCache()
        self._check_linear: bool = True  # unless the user says that the rule is not meant to be linear

    def _forget(self, check_linear: bool) -> None:
        """Forget what was cached for another rule."""
        self._check_linear, self.cache = check_linear, RuleCache()

    @property
    def is_linear(self) -> bool:
        """Tell whether the rule must be linear."""
        return self._check_linear and config.check_linear_rules

    def __repr__(self) -> str:
        return f"<{self.primitive} of {core.describe_function(self.fun)}>"

    def __getattr__(self, name: str) -> Any:
        """Find `def_vmap`, `defjvp` and the like in the function, if it has rules of its own, too."""
        if name.startswith("def") and hasattr(type(fun := self.__dict__.get("fun")), name):
            return getattr(fun, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def rules(self) -> tuple[Callable[..., Any], ...]:
        """Return the functions that make up the rule; none if it is not defined."""
        raise NotImplementedError

    def flat_call(self, nondiff: "Nondiff", tree: Any) -> "FlatCall":
        """Make a call with arguments of this structure."""
        raise NotImplementedError

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if not self.rules():
            define = self.primitive.name.replace("custom_", "def")
            raise AttributeError(f"{self.primitive}: {self.__name__} has no rule: define one with {define}.")
        nondiff, arguments = self._split(positional(str(self.primitive), self.__name__, self._signature, args, kwargs))
        leaves, tree = pytree.flatten(arguments)
        if not all(map(is_arraylike, leaves)):
            check_distinct(self.primitive.name, leaves)
            arguments = [holding(x) for x in arguments]
            leaves, tree = pytree.flatten(arguments)
        if not all(map(is_arraylike, leaves)):
            advice = "\n  Name it in nondiff_argnums if it is not to be differentiated."
            others = nondiff.others(len(arguments))
            check_arguments(self.primitive.name, self.fun, self.__name__, arguments, others, advice)
        flat = self.flat_call(nondiff, tree)
        operands = [*nondiff.operands, *leaves]
        held = None if core.is_evaluating() else closures.convert_closure(flat, operands)
        custom, given = (flat, operands) if held is None else (held, [*held.tracers, *operands])
        outs = self.primitive.bind(*given, custom=custom, jaxpr=None, n_consts=None)
        return pytree.unflatten(custom.out_tree, outs)

    @overload
    def __get__(self, instance: None, owner: Any = None) -> "CustomFunction[P, R]": ...
    @overload
    def __get__(
        self: "CustomFunction[Concatenate[Any, Rest], R]", instance: object, owner: Any = None
    ) -> Callable[Rest, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else bind_instance(self, instance)

    def _position(self, name: str) -> int:
        """Return the position of the argument `name`. Raises: ValueError if there is none."""
        names = list(self._signature.parameters) if self._signature else []
        if name not in names:
            has = ", ".join(names) or "no names"
            raise ValueError(f"{self.primitive}: nondiff_argnames names {name!r}, but {self.__name__} has {has}.")
        return names.index(name)

    def _split(self, args: tuple[Any, ...]) -> tuple["Nondiff", list[Any]]:
        """Split arguments: those without a derivative; the others."""
        for i in self.nondiff_argnums:
            if not -len(args) <= i < len(args):
                raise ValueError(
                    f"{self.primitive}: nondiff_argnums names argument {i}, but {self.__name__} was called with "
                    f"{len(args)} argument{'s' * (len(args) != 1)}."
                )
        chosen = {i % len(args): args[i] for i in self.nondiff_argnums}
        return Nondiff(chosen), [x for i, x in enumerate(args) if i not in chosen]


def signature_of(fun: Any) -> inspect.Signature | None:
    """Return the signature of a function, without what a `partial` gives by name; None if it has none, as some in C."""
    try:
        found = inspect.signature(fun)
    except (TypeError, ValueError):
        return None
    given = fun.keywords if isinstance(fun, functools.partial) else ()
    return found.replace(parameters=[p for p in found.parameters.values() if p.name not in given]) if given else found


def positional(
    who: str, name: str, signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Bind all arguments by position, defaults among them: rules take them so.

    Arguments that have no position keep their defaults. Raises: TypeError if one of them is given.
    """
    if signature is None and kwargs:
        raise TypeError(f"{who}: the arguments of {name} have no names; give them by position.")
    if signature is None:
        return args
    bound = signature.bind(*args, **kwargs)
    if bound.kwargs:
        names = ", ".join(bound.kwargs)
        raise TypeError(f"{who}: {name} takes {names} by name only, but its rule takes positions.")
    bound.apply_defaults()
    return bound.args


class Nondiff:
    """Arguments without a derivative, by position. Traced arrays in them are operands; the rest is static."""

    def __init__(self, args: dict[int, Any]) -> None:
        self.positions: Final = sorted(args)
        leaves, self._tree = pytree.flatten([args[i] for i in self.positions])
        self._leaves = [stop_gradient(x) if isinstance(x, Tracer) else x for x in leaves]
        self._traced = [k for k, x in enumerate(self._leaves) if isinstance(x, Tracer)]
        self.operands: Final = [self._leaves[k] for k in self._traced]
        self.static: Final = [x for x in self._leaves if not isinstance(x, Tracer)]

    def before(self, others: str) -> str:
        """Describe the arguments of a rule that takes those of nondiff_argnums before `others`."""
        n = len(self.positions)
        which = "argument" if n == 1 else f"{n} arguments"
        return f"the {which} of nondiff_argnums, then {others}" if n else others

    def values(self, operands: Sequence[Any]) -> list[Any]:
        """Return the arguments, with other values for the traced arrays."""
        leaves = list(self._leaves)
        for k, x in zip(self._traced, operands, strict=True):
            leaves[k] = x
        return pytree.unflatten(self._tree, leaves)

    def others(self, n: int) -> list[int]:
        """List the positions of the n arguments that are differentiated."""
        return [i for i in range(n + len(self.positions)) if i not in self.positions]

    def inserted(self, operands: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        """Insert the arguments without a derivative in their places."""
        args = list(given)
        for i, x in zip(self.positions, self.values(operands)):
            args.insert(i, x)
        return args


class FlatCall:
    """One call on flat arrays: the traced arrays without a derivative, then the differentiable arguments."""

    def __init__(self, custom: CustomFunction[..., Any], nondiff: Nondiff, tree: Any) -> None:
        self.custom: Any = custom  # a CustomFunction, whose attributes only the subclasses know
        self.nondiff: Final = nondiff
        self.tree: Final = tree
        self.primitive: Final = custom.primitive
        self.n: Final = len(nondiff.operands)
        self.out_tree: Any = None
        self._types: tuple[Any, Sequence[ShapedArray]] | None = None  # of the result, once the function was traced
        self.__name__: Final = custom.__name__
        self.__wrapped__: Final = custom.fun

    def function(self, *operands: Any) -> list[Any]:
        """Return the function itself."""
        given = as_arguments(operands)
        args = self.nondiff.inserted(given[: self.n], pytree.unflatten(self.tree, given[self.n :]))
        result = self.custom.fun(*args)
        check_arrays(f"{self.primitive}: the result{{}} of {self.__name__}", result)
        outs, self.out_tree = pytree.flatten(result)
        return outs

    def traced(self, avals: tuple[ShapedArray, ...]) -> tuple[Jaxpr, tuple[Any, ...]]:
        """Trace the function; return its program and constants, see `remembering`."""
        program, consts, self.out_tree = self.remembering(avals, lambda: self._trace(avals))
        self._types = self.out_tree, program.out_avals
        return program, consts

    def _trace(self, avals: tuple[ShapedArray, ...]) -> tuple[Jaxpr, tuple[Any, ...], Any]:
        return *trace_to_jaxpr(self.function, avals, what=self.primitive.name, function=self), self.out_tree

    def remembering(self, key: Any, make: Callable[[], tuple[Any, tuple[Any, ...], Any]]) -> tuple[Any, Any, Any]:
        """Cache `make()`, a program, its constants and a note, for one trace, unless the program depends on this call.

        It does if there are arguments without a derivative, or if a constant is traced.
        """
        whole, cache = (self.tree.snapshot(), key, config.trace_key()), self.custom.cache.programs
        found = None if self.nondiff.positions else cache.get(whole)
        if found is not None:
            return found
        made = make()
        if not self.nondiff.positions and not any(isinstance(x, Tracer) for x in made[1]):
            cache.enter(whole, made)
        return made

    def rule(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Apply the user's rule. Raises: TypeError if its result does not fit, or is not linear in the tangents."""
        avals = tuple([aval_of(x) for x in primals])
        if self._types is None and not self.is_checked(self.key(avals)):
            attempt(lambda: self.traced(avals))
        values, pushed = self.push(as_arguments(primals), as_arguments(tangents))
        self.first_time(self.key(avals), lambda: self.check_linear(avals))
        return values, pushed

    def describe_rule(self) -> str:
        """Name the function that gives the value and the derivative, for messages."""
        raise NotImplementedError

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Apply the rule. Returns: values, seen by `check_value`, and tangents, which may be `Zero`."""
        raise NotImplementedError

    def check_value(self, value: Any) -> list[Any]:
        """Flatten the value that the rule gives. Raises: TypeError if it is not like the value of the function."""
        check_arrays(f"{self.primitive}: the value{{}} of {self.describe_rule()}", value)
        values, self.out_tree = pytree.flatten(value)
        if self._types is not None:
            check_values(self.primitive, self.describe_rule(), values, self.out_tree, *self._types)
        return values

    def check_linear(self, avals: tuple[ShapedArray, ...]) -> None:
        """Check that the rule, traced for these types, is linear; a backward rule later. Raises: LinearityError."""

    def first_time(self, key: Any, check: Callable[[], None]) -> None:
        """Make a check that depends on types only, unless it was made before; the check may come here again."""
        known = self.custom.cache
        if self.is_checked(key):
            return
        if len(known.checked) >= _CHECKED_LIMIT:
            known.constant.clear()  # after the next check it is known again
            known.checked.clear()
        call_in_scope(_checking, {*_checking.get(), (id(known), key)}, check)
        known.checked.add(key)

    def is_checked(self, key: Any) -> bool:
        """Tell whether the check was made, or is being made around here: another thread's counts when it is over."""
        return key in self.custom.cache.checked or (id(self.custom.cache), key) in _checking.get()

    def key(self, avals: Sequence[ShapedArray], *more: Any) -> Any:
        """Make the cache key of calls with these types."""
        return (self.tree.snapshot(), tuple([aval.strong() for aval in avals]), *more)


# ---- what is remembered for a trace --------------------------------------------------------------------------
# Caches of what is traced for one program.


K = TypeVar("K")
V = TypeVar("V")


class PerTrace(Generic[K, V]):
    """A cache for as long as the outermost trace: a program that calls a function often traces it once.

    The next program traces it anew, for it may read Python variables that have changed. Outside of any trace nothing is
    cached. None is no value.
    """

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: tuple[Callable[[], Any], dict[K, V]] = _no_trace, {}

    def get(self, key: K) -> V | None:
        """Return the entry for `key`; None if there is none of the trace at work."""
        of, found = self._found
        trace = core.outermost_trace()
        return found.get(key) if trace is not None and of() is trace else None

    def enter(self, key: K, value: V) -> V:
        """Add `value` for `key`, and return it."""
        trace = core.outermost_trace()
        if trace is not None:
            if self._found[0]() is not trace:
                self._found = weakref.ref(trace), {}
            self._found[1][key] = value
        return value


def _no_trace() -> None:
    return None
