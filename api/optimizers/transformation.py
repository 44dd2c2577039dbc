"""Gradient transformations: pairs of pure functions `init` and `update`, and how they are put together.

`init(params)` gives the state to begin with, `update(updates, state, params)` the transformed updates and the next
state. An optimizer is a chain of them, and `apply_updates` makes the step. Shapes, names and numbers are those of optax
(Babuschkin et al. 2020, "The DeepMind JAX ecosystem"), so that transformations of either may be mixed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

from tapeless.tracer import dtypes, pytree
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import ArrayLike
from tapeless.tracer.pytree.treedef import flatten_up_to
from tapeless.tracer.settings.config import config

Updates: TypeAlias = Any  # pytrees of arrays, of one structure
Params: TypeAlias = Any
OptState: TypeAlias = Any  # pytree of arrays
Schedule: TypeAlias = Callable[[ArrayLike], ArrayLike]  # the number of steps before this one -> a number
ScalarOrSchedule: TypeAlias = ArrayLike | Schedule
TransformInitFn: TypeAlias = Callable[[Params], OptState]
TransformUpdateFn: TypeAlias = Callable[..., tuple[Updates, OptState]]  # (updates, state, params=None)


class GradientTransformation(NamedTuple):
    """A pair of pure functions: `init(params) -> state` and `update(updates, state, params) -> updates, state`."""

    init: TransformInitFn
    update: TransformUpdateFn

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(_NO_ATTRIBUTE.format(name), name=name, obj=None)


_NO_ATTRIBUTE = """an optimizer has no attribute {!r}: it is a pair of functions, init and update.
  Write updates, state = optimizer.update(gradient, state, params), then \
params = tl.optimizers.apply_updates(params, updates)."""


class GradientTransformationExtraArgs(GradientTransformation):
    """A gradient transformation whose `update` takes any keyword arguments, and leaves alone those it does not know."""


class EmptyState(NamedTuple):
    """The state of a transformation that remembers nothing."""


def describe_transformation(
    init: TransformInitFn, update: TransformUpdateFn
) -> tuple[TransformInitFn, TransformUpdateFn]:
    """Give the functions of a transformation the documentation that is common to all transformations."""
    init.__doc__, update.__doc__ = init.__doc__ or _INIT, update.__doc__ or _UPDATE
    return init, update


_INIT = """Make the state before the first step.

Args:
  params: pytree of arrays, the parameters that are trained.
Returns: a pytree of arrays.
"""

_UPDATE = """Transform gradients into updates, which `apply_updates` adds to the parameters.

Args:
  updates: pytree of arrays, as the parameters: gradients, or the updates of the transformation before.
  state: what `init`, or the call before this one, returned.
  params: the parameters, which some transformations need: weight decay, line searches.
  extra_args: such as the value and the function, which line searches need.
Returns: the updates, and the next state.
"""


def init_empty_state(params: Params) -> EmptyState:
    """Return the state of a transformation that remembers nothing."""
    del params
    return EmptyState()


def with_extra_args_support(tx: GradientTransformation) -> GradientTransformationExtraArgs:
    """Make a transformation whose `update` drops keyword arguments unknown to the `update` of `tx`."""
    if isinstance(tx, GradientTransformationExtraArgs):
        return tx

    def update(updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any) -> Any:
        del extra_args
        return tx.update(updates, state, params)

    update.__doc__ = tx.update.__doc__
    return GradientTransformationExtraArgs(tx.init, update)


def stateless(f: Callable[[Updates, Params | None], Updates]) -> GradientTransformation:
    """Make a transformation of a function `(updates, params) -> updates`."""

    def update(updates: Updates, state: OptState, params: Params | None = None) -> tuple[Updates, OptState]:
        return f(updates, params), state

    return GradientTransformation(*describe_transformation(init_empty_state, update))


def identity() -> GradientTransformation:
    """Make the transformation that changes nothing."""
    return stateless(lambda updates, params: updates)


def set_to_zero() -> GradientTransformation:
    """Make the transformation whose updates are zero: it freezes parameters."""
    return stateless(lambda updates, params: pytree.tree_map(tnp.zeros_like, updates))


def chain(*args: GradientTransformation) -> GradientTransformationExtraArgs:
    """Apply transformations one after the other, the first to the gradients; their states make a tuple.

    Returns: a transformation; the keyword arguments of its `update` reach all that take any.
    Raises: ValueError from `update` if the state has another number of parts than there are transformations, or was
      made by another optimizer.
    """
    transformations = [with_extra_args_support(tx) for tx in args]

    def init(params: Params) -> OptState:
        return tuple([tx.init(params) for tx in transformations])

    def update(updates: Updates, state: OptState, params: Params | None = None, **extra_args: Any) -> Any:
        if not isinstance(state, (tuple, list)) or len(state) != len(transformations):
            raise ValueError(
                f"update: the state must be a tuple of {len(transformations)}, as init of the same optimizer returns "
                f"it, not {pytree.describe_node(pytree.structure(state))}.\n"
                "  The order is update(gradients, state, parameters)."
            )
        after: list[OptState] = []
        for tx, before in zip(transformations, state):
            try:
                updates, next_state = tx.update(updates, before, params, **extra_args)
            except AttributeError as error:
                if error.obj is not before:
                    raise
                raise ValueError(_OF_ANOTHER.format(type(before).__name__)) from None
            after.append(next_state)
        return updates, tuple(after)

    return GradientTransformationExtraArgs(*describe_transformation(init, update))


_OF_ANOTHER = """update: the state has a {} where this optimizer has another: it was made by another optimizer.
  Make the state by init(params) of the same optimizer."""


class MaskedState(NamedTuple):
    """The state of a `masked` transformation: the state of the transformation inside."""

    inner_state: Any


class MaskedNode(NamedTuple):
    """Stand for a leaf that a `masked` transformation does not see: a node without leaves."""


def masked(inner: GradientTransformation, mask: Any) -> GradientTransformationExtraArgs:
    """Transform only some of the updates; the others pass unchanged, neither scaled nor negated.

    To freeze parameters, follow with `masked(set_to_zero(), ...)` of theirs.

    Args:
      inner: the transformation, which sees `MaskedNode()` in the place of every other leaf.
      mask: pytree of bools, of the structure of the parameters or a prefix of it, or a function of them to that.
    Raises: ValueError from `init` and `update`, naming the path, if the mask has another structure.
    """
    tx = with_extra_args_support(inner)

    def init(params: Params) -> MaskedState:
        return MaskedState(tx.init(_seen(mask, params)))

    def update(updates: Updates, state: MaskedState, params: Params | None = None, **extra_args: Any) -> Any:
        flags = mask(updates) if callable(mask) else mask
        seen = None if params is None else _seen(flags, params)
        pushed, inner_state = tx.update(_seen(flags, updates), state.inner_state, seen, **extra_args)
        mixed = pytree.tree_map(lambda yes, new, old: new if yes else old, flags, pushed, updates)
        return mixed, MaskedState(inner_state)

    return GradientTransformationExtraArgs(*describe_transformation(init, update))


def _seen(mask: Any, tree: Any) -> Any:
    flags = mask(tree) if callable(mask) else mask
    try:
        return pytree.tree_map(lambda yes, x: x if yes else MaskedNode(), flags, tree)
    except ValueError:
        difference = next(pytree.differences(pytree.structure(flags), pytree.structure(tree), as_prefix=True), None)
        if difference is None:
            raise
        raise ValueError(f"masked: {_differs(*difference)}\n{_WHAT_A_MASK_IS}") from None


def _differs(path: Any, in_mask: Any, in_params: Any) -> str:
    """Say how a mask differs from the parameters at a path."""
    where = f"params{pytree.keystr(path)}"
    if in_mask is None:
        return f"the mask has no entry for {where}."
    if in_params is None:
        return f"the mask has an entry for {where}, which is not there."
    return f"{where} is {pytree.describe_node(in_params)}, in the mask {pytree.describe_node(in_mask)}."


_WHAT_A_MASK_IS = """  A mask is True or False for each leaf of the parameters, or for a part of them as a whole.
  tl.tree.map_with_path(lambda path, p: ..., params) makes one by their names."""


_TREES = "the tree of updates", "the tree of parameters"
UPDATES_AND_STATE = "the tree of updates", "the optimizer's state"


def map_updates(f: Callable[..., Any], updates: Updates, *others: Any, who: str = "update", trees: Any = _TREES) -> Any:
    """Map a function over the leaves of updates and those of other trees; where an update is None, so is the result.

    Args:
      who, trees: for messages, who maps, and what the first and the other trees are.
    Raises: ValueError if another tree, which is of parameters or was made of them by `init`, has another structure or
      other shapes.
    """
    leaves, treedef = pytree.flatten(updates, lambda u: u is None)
    rest = [flatten_up_to(treedef, tree, who, trees) for tree in others]
    rows = list(zip(leaves, *rest, strict=True))
    for i, (u, *xs) in enumerate(rows):
        if u is not None and not all(_is_leaf(x) and tnp.shape(x) == tnp.shape(u) for x in xs):
            raise ValueError(_shapes_differ(updates, i, rows[i], who, trees))
    with config.scope(numpy_dtype_promotion="standard"):  # moments may be real where updates are complex
        return treedef.unflatten([None if u is None else f(u, *xs) for u, *xs in rows])


def _shapes_differ(updates: Updates, leaf: int, row: Any, who: str, trees: Any) -> str:
    """Name the path where the shapes of leaves differ, or the tree without an array there."""
    path, _ = pytree.leaves_with_path(updates, lambda u: u is None)[leaf]
    what = "shapes" if all(map(_is_leaf, row)) else "trees"
    types = " and ".join(f"{_described(x)} in {tree}" for x, tree in zip(row, trees))
    message = f"{who}: the {what} at {pytree.keystr(path) or 'the root'} differ: {types}."
    return f"{message}{_WHOSE_STATE}" if trees is UPDATES_AND_STATE else message


_WHOSE_STATE = "\n  Make the state by init(params), of the parameters that are trained."


def _described(x: Any) -> str:
    """Describe an array, or the tree that is in the place of one."""
    return str(tnp.asarray(x).aval) if _is_leaf(x) else pytree.describe_node(pytree.structure(x))


def _is_leaf(x: Any) -> bool:
    """Tell whether x is an array, also one of another library, and no tree or None."""
    return pytree.structure(x) is pytree.LEAF


def apply_updates(params: Params, updates: Updates) -> Params:
    """Add updates to parameters, which keep their dtypes; a parameter that is None stays None.

    Args:
      params: pytree of arrays.
      updates: pytree of arrays of the same structure and shapes.
    Raises: TypeError if a parameter is an integer and its update is not, which would be cut off; ValueError if the
      structures or shapes differ.
    """
    return map_updates(_moved, params, updates, who="apply_updates", trees=_TREES[::-1])


def _moved(p: Any, u: Any) -> Any:
    p, u = tnp.asarray(p), tnp.asarray(u)
    if not dtypes.is_inexact(p.dtype) and dtypes.is_inexact(u.dtype):
        raise TypeError(
            f"apply_updates: a parameter is {p.aval}, and its update, {u.aval}, would be cut off.\n"
            "  Convert the parameter with astype(float), or leave it out of those that are trained."
        )
    return tnp.asarray(p + u).astype(p.dtype)


def check_params(who: str, params: Params | None) -> Params:
    """Return the parameters. Raises: ValueError if `update` was not given any."""
    if params is None:
        raise ValueError(f"{who}: its update needs the parameters. Call update(updates, state, params).")
    return params
