"""Differentiate with respect to arrays in references, and add up gradients in references.

A function that writes a reference is one of the array in it before; besides its result, it gives the array in it
after. So the cotangent of a reference goes in, of the array after, and comes out, of the array before; it
is in a reference, too, in place: a function that only reads adds to it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from tapeless.tracer import core, pytree
from tapeless.tracer.numpy import zeros_like
from tapeless.tracer.references import Ref, lent, values_of


class _Word:
    """An object that says one thing: all of a class are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(_Word):
    """Entry of `with_refs`: the gradient of the argument is returned."""

    __slots__ = ()


class GradRef(_Word):
    """Result of a pull-back where the gradient of the argument was added to a reference."""

    __slots__ = ()


class DontWant(_Word):
    """Entry of `with_refs`: the gradient of the argument is not wanted. What only makes it is not compiled."""

    __slots__ = ()


class DidntWant(_Word):
    """Result of a pull-back where the gradient of the argument was not wanted."""

    __slots__ = ()


class NotNeeded(_Word):
    """Entry of `args_res`: the pull-back does not read the argument. It is a pytree without leaves."""

    __slots__ = ()


pytree.register_pytree_node(NotNeeded, lambda _: ((), None), lambda _aux, _children: NotNeeded())


class OfArrays:
    """A function of arrays alone: it takes and returns the arrays in the references among its arguments, too.

    Its result is (result, the arrays in references after it), and aux as it is.
    """

    def __init__(self, fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool) -> None:
        self.__wrapped__: Final = fun
        self._has_aux = has_aux
        leaves, tree = pytree.flatten(tuple(primals))
        self.tree: Final = tree
        self.references: Final = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
        self.primals: tuple[Any, ...] = pytree.unflatten(self.tree, values_of(leaves))
        self.__name__: Final = getattr(fun, "__name__", type(fun).__name__)

    def __call__(self, *args: Any) -> Any:
        leaves = pytree.leaves(args)
        inner = {i: Ref(leaves[i], core.current_trace(), borrowed=True) for i in self.references}
        out = self.__wrapped__(*pytree.unflatten(self.tree, [inner.get(i, x) for i, x in enumerate(leaves)]))
        after = [ref.value for ref in inner.values()]
        if not self._has_aux:
            return out, after
        is_pair = isinstance(out, tuple) and len(out) == 2
        return ((out[0], after), out[1]) if is_pair else out  # what is no pair is refused

    def lent(self, call: Callable[[], Any], who: str) -> Any:
        """Run `call()` while nobody else uses the references. Raises: as `references.lent`."""
        with lent(self.references.values(), who):
            return call()

    def put_back(self, after: Sequence[Any]) -> None:
        """Write into the references the arrays that they hold after the call."""
        for ref, x in zip(self.references.values(), after, strict=True):
            if x is not ref.get():
                ref.put(x)


def has_references(args: Any) -> bool:
    """Tell whether there are references among the leaves of a pytree."""
    return any(isinstance(x, Ref) for x in pytree.leaves(args))


class ReferencePullBack:
    """The pull-back of a function some of whose arguments are references: `with_refs` says where gradients go."""

    def __init__(self, pull_back: Any, function: OfArrays) -> None:
        self._pull_back, self._function = pull_back, function

    def __call__(self, cotangent: Any) -> Any:
        raise ValueError(
            f"vjp: {self._function.__name__} was differentiated with respect to a reference, whose gradient is in a "
            "reference, too.\n  Give it one: pull_back.with_refs(grad_ref)(cotangent)."
        )

    def with_refs(self, *maybe_ct_refs: Any) -> Callable[[Any], Any]:
        """Make the pull-back whose gradients go where entries for the arguments say, as of `PullBack.with_refs`.

        For a reference the entry is a reference, or DontWant(): in it are the cotangents of what is in that reference
        after the call, and then those of what was before.
        """
        function = self._function
        entries = entries_of(maybe_ct_refs, function.primals)
        for i in function.references:
            if not isinstance(entries[i], (Ref, DontWant)):
                raise TypeError(f"with_refs: the gradient of a reference must go to a reference, not {entries[i]!r}.")

        def pull(cotangent: Any) -> Any:
            before = [
                entries[i].get() if isinstance(entries[i], Ref) else zeros_like(x.value)
                for i, x in function.references.items()
            ]
            leaves, tree = pytree.flatten(self._pull_back((cotangent, before)))
            return pytree.unflatten(tree, [*map(self._placed, range(len(leaves)), entries, leaves)])

        return pull

    def _placed(self, i: int, entry: Any, ct: Any) -> Any:
        if i in self._function.references and isinstance(entry, Ref):
            entry.set(ct)
            return GradRef()
        return place_cotangent(entry, ct)


def entries_of(given: tuple[Any, ...], arguments: tuple[Any, ...]) -> list[Any]:
    """Find an entry for each leaf of the arguments. Raises: ValueError if structures differ; TypeError for no entry."""
    entries = pytree.broadcast_prefix(given, arguments, _is_entry, who="with_refs", name="the entries")
    for entry in entries:
        if not _is_entry(entry):
            raise TypeError(f"with_refs: expected a reference, GradValue() or DontWant(), not {entry!r:.80}.")
    return entries


def _is_entry(x: Any) -> bool:
    return isinstance(x, (Ref, GradValue, DontWant))


def place_cotangent(entry: Any, ct: Any) -> Any:
    """Put a cotangent where an entry says; return what stands for it in the result."""
    if isinstance(entry, Ref):
        entry.addupdate(ct)
        return GradRef()
    return DidntWant() if isinstance(entry, DontWant) else ct
