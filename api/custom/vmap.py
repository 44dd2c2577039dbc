"""Custom batching rules: functions with a rule of their own for many examples at once."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

from tapeless.arguments.argument_checks import check_arguments, check_arrays, check_callable
from tapeless.arguments.names import bind_instance
from tapeless.control_flow.body_tracing import TracedBody, as_type, gives_way, trace
from tapeless.control_flow.scan import scan
from tapeless.custom.calls import PerTrace, positional, signature_of
from tapeless.custom.closures import alive_in
from tapeless.tracer import core, pytree
from tapeless.tracer.core import Tracer, function_name
from tapeless.tracer.flags import merge_lists, where_false, where_true
from tapeless.tracer.jaxpr import Jaxpr, Var
from tapeless.tracer.numpy.promotion import as_array
from tapeless.tracer.primitives import custom as primitives
from tapeless.tracer.rule_arguments import as_arguments
from tapeless.tracer.settings.config import config
from tapeless.tracer.staging import standing_for
from tapeless.tracer.types import ShapedArray, aval_of

P = ParamSpec("P")
R = TypeVar("R")


class custom_vmap(Generic[P, R]):
    """A function with a `vmap` rule of its own.

    Where no argument is mapped, it is the function, its derivatives too. Under `vmap` it is what its rule says, and
    derivatives are those of the rule, of any order and in both modes, around it, `grad(vmap(f))`, or inside,
    `vmap(grad(f))`. In the latter, reverse mode computes the rule again for the derivative.

    Args:
      fun: a function of pytrees of arrays. Values it closes over must not be mapped.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> @custom_vmap
    ... def f(x, y):
    ...     return x + y
    >>> @f.def_vmap
    ... def f_rule(axis_size, in_batched, xs, ys):
    ...     return xs * ys, True
    >>> tl.vmap(f)(tnp.arange(3.0), tnp.arange(3.0))
    Array([0., 1., 4.], dtype=float32)
    """

    __name__: str

    def __init__(self, fun: Callable[P, R]) -> None:
        check_callable("custom_vmap", fun)
        self.__name__ = function_name(fun)
        functools.update_wrapper(self, fun, updated=())
        self.fun: Final[Callable[P, R]] = fun
        self.vmap_rule: Callable[..., Any] | None = None
        self._bodies: PerTrace[Any, TracedBody] = PerTrace()

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule `rule(axis_size, in_batched, *args) -> (results, out_batched)`; returns it, so it can decorate.

        Args:
          vmap_rule: `in_batched` has a pytree of booleans for every argument, as `out_batched` for the results: true
            for those with the mapped axis, which is the first.
        """
        check_callable("custom_vmap", vmap_rule, "the rule")
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.vmap_rule is None:
            raise AttributeError(f"custom_vmap: {self.__name__} has no rule: define one with def_vmap.")
        given = positional("custom_vmap", self.__name__, signature_of(self.fun), args, kwargs)
        check_arguments("custom_vmap", self.fun, self.__name__, given)
        leaves, tree = pytree.flatten(given)
        if core.is_evaluating():  # then no argument is mapped
            return self._evaluated(pytree.unflatten(tree, as_arguments(leaves)))
        body = self._traced(tree, tuple([aval_of(x) for x in leaves]))
        held = alive_in(self.vmap_rule)
        jaxpr, consts = _taking(body, held)
        outs = primitives.custom_vmap(_Rule(self, tree, body, held), jaxpr, consts, [*held, *leaves])
        return pytree.unflatten(pytree.structure(body.result), outs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else bind_instance(self, instance)

    def _evaluated(self, args: Sequence[Any]) -> Any:
        result = cast(Callable[..., Any], self.fun)(*args)
        check_arrays(f"custom_vmap: the result{{}} of {self.__name__}", result)
        return pytree.tree_map(as_array, result)

    def _traced(self, tree: Any, avals: tuple[ShapedArray, ...]) -> TracedBody:
        """Trace the function, once in a program for all calls with arguments of these types."""
        key = tree.snapshot(), avals, config.trace_key()
        body = self._bodies.get(key)
        if body is None:
            fun: Callable[..., Any] = self.fun
            body = trace("custom_vmap", fun, lambda *xs: fun(*pytree.unflatten(tree, xs)), avals, True)
            body = body._replace(result=_types(body))
            if not any(isinstance(x, Tracer) for x in body.consts):
                self._bodies.enter(key, body)
        return body


def _taking(body: TracedBody, held: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
    """Return the program with `held`, arrays that its rule closes over, before its arguments; and its other constants.

    So they stand for themselves wherever the rule is called, and derivatives go through them.
    """
    if not held:
        return body.jaxpr, list(body.consts)
    n, known = len(body.consts), {id(x): v for x, v in zip(body.consts, body.jaxpr.invars)}
    others = [x for x in body.consts if all(x is not y for y in held)]
    inputs = [*[known[id(x)] for x in others], *[known.get(id(x)) or Var(aval_of(x)) for x in held]]
    return body.jaxpr.replace(invars=[*inputs, *body.jaxpr.invars[n:]]), others


def _types(body: TracedBody) -> Any:
    """Return the types of the results, in their structure."""
    return pytree.unflatten(pytree.structure(body.result), list(body.jaxpr.out_avals))


class _Rule:
    """Adapter of the user's rule to flat arrays, first those that it closes over; it checks the rule's results."""

    def __init__(self, custom: custom_vmap[..., Any], tree: Any, body: TracedBody, held: Sequence[Tracer]) -> None:
        self._custom, self._tree, self._wanted, self._held = custom, tree, body.result, held
        self._read = {id(x) for x in body.consts}  # by the function
        self.__name__ = custom.__name__

    def __call__(self, size: int, leaves: Sequence[Any], mapped: Sequence[bool]) -> tuple[list[Any], list[bool]]:
        n = len(self._held)
        self._check_not_mapped(leaves[:n], mapped[:n])
        here, values = where_false(mapped[:n], self._held), where_false(mapped[:n], leaves[:n])
        return standing_for(here, values, self._applied, size, leaves[n:], mapped[n:])

    def _check_not_mapped(self, values: Sequence[Any], mapped: Sequence[bool]) -> None:
        for x, value, yes in zip(self._held, values, mapped):
            if yes and id(x) in self._read:
                raise primitives.mapped_closure(self.__name__, value, 0)

    def _applied(self, size: int, leaves: Sequence[Any], mapped: Sequence[bool]) -> tuple[list[Any], list[bool]]:
        args, in_batched = pytree.unflatten(self._tree, as_arguments(leaves)), pytree.unflatten(self._tree, mapped)
        out = self._custom.vmap_rule(size, list(in_batched), *args)  # type: ignore[misc]  # it was there at the call
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(
                f"custom_vmap: the rule of {self.__name__} must return (results, out_batched), but returned {out!r}."
            )
        values, out_batched = out
        self._check_structures(values, out_batched)
        check_arrays(f"custom_vmap: the result{{}} of the rule of {self.__name__}", values)
        flags = pytree.leaves(out_batched)
        wanted = [_batched(aval, size) if yes else aval for aval, yes in zip(pytree.leaves(self._wanted), flags)]
        self._check_types(size, values, wanted)
        return [as_type(y, aval) for y, aval in zip(pytree.leaves(values), wanted)], flags

    def _check_structures(self, values: Any, out_batched: Any) -> None:
        of_values, of_flags, own = map(pytree.structure, (values, out_batched, self._wanted))
        told = pytree.compare(of_values, of_flags, ("the results", "out_batched")) if of_values != of_flags else ""
        if told or not all(isinstance(x, bool) for x in pytree.leaves(out_batched)):
            raise ValueError(
                f"custom_vmap: the rule of {self.__name__} must return out_batched as booleans in the structure of its "
                f"results, not {out_batched!r:.200}.{told}"
            )
        if of_values != own:
            raise ValueError(
                f"custom_vmap: the rule of {self.__name__} returned results of another structure than the function."
                f"{pytree.compare(own, of_values, ('the function', 'the rule'))}"
            )

    def _check_types(self, size: int, values: Any, wanted: Sequence[ShapedArray]) -> None:
        wrong = [
            f"  result{pytree.keystr(path)} is {aval_of(y)}, but must be {aval}"
            for (path, y), aval in zip(pytree.leaves_with_path(values), wanted)
            if not gives_way(aval_of(y), aval)
        ]
        if wrong:
            raise TypeError(
                f"custom_vmap: the rule of {self.__name__}, for {size} examples, returned other types than the "
                "function has:\n" + "\n".join(wrong)
            )


def _batched(aval: ShapedArray, size: int) -> ShapedArray:
    return aval.update(shape=(size, *aval.shape))


def sequential_vmap(f: Callable[P, R]) -> custom_vmap[P, R]:
    """Make a function that is called in a loop, one example after the other, where it is mapped.

    >>> import tapeless as tl, tapeless.numpy as tnp
    >>> tl.vmap(sequential_vmap(lambda x: x + 1))(tnp.arange(3))
    Array([1, 2, 3], dtype=int32)
    """
    check_callable("sequential_vmap", f)
    custom = custom_vmap(f)
    one = cast(Callable[..., Any], custom)

    @custom.def_vmap
    def rule(axis_size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        flags, leaves = pytree.leaves(in_batched), pytree.leaves(list(args))
        tree = pytree.structure(list(args))

        def step(_: Any, elements: Any) -> tuple[Any, Any]:
            return (), one(*pytree.unflatten(tree, merge_lists(flags, elements, where_false(flags, leaves))))

        _, out = scan(step, (), where_true(flags, leaves), axis_size)
        return out, pytree.tree_map(lambda _: True, out)

    return custom
