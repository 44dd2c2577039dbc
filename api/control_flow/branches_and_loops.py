"""Branches and loops, with JAX's names and meanings: cond, switch, while_loop, fori_loop. Scans are in scan.py."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from tapeless.arguments.argument_checks import CLOSE_OVER, check_arrays, check_callable, check_takes
from tapeless.arguments.held_references import holding
from tapeless.arguments.names import argument_name
from tapeless.control_flow import forwarding, references, without_jit
from tapeless.control_flow.body_tracing import TracedBody, as_type, join_branches, trace, unify_carry_types
from tapeless.control_flow.scan import Checkpoints, Number, options_of, steps_at_once
from tapeless.tracer import core, dtypes, pytree
from tapeless.tracer.array import Array
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.primitives.elementwise import add, ceil, clamp, convert_element_type, lt, ne, sub
from tapeless.tracer.primitives.operands import constant, known_elements
from tapeless.tracer.references import values_of
from tapeless.tracer.settings.config import config
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike

if TYPE_CHECKING:
    from tapeless.control_flow import loop_checkpoints
else:
    loop_checkpoints = LateModule("tapeless.control_flow.loop_checkpoints")

_NOT_GIVEN: Any = object()

# ---- branches ------------------------------------------------------------------------------------------------


R = TypeVar("R")
Carry = TypeVar("Carry")


def cond(
    pred: Any,
    true_fun: Callable[..., R],
    false_fun: Callable[..., R],
    *operands: Any,
    operand: Any = _NOT_GIVEN,
) -> R:
    """Apply one of two functions: `true_fun(*operands) if pred else false_fun(*operands)`, for a traced `pred`.

    Both functions are traced, one is computed. They may close over arrays.

    Args:
      pred: a boolean scalar; of a number, whether it is not 0.
      true_fun, false_fun: functions of the operands, giving pytrees of one structure and the same types.
      operands: pytrees of arrays.
      operand: the only operand, by name.
    Raises: TypeError if `pred` is no scalar, an operand is no array, or the results differ: every leaf is named.

    >>> cond(3 > 2, lambda x: x + 1, lambda x: x - 1, 10)
    Array(11, dtype=int32, weak_type=True)
    """
    if callable(false_fun) and not callable(true_fun) and len(operands) == 2 and callable(operands[1]):
        return _cond_of_two(pred, true_fun, false_fun, *operands)
    check_callable("cond", true_fun, "true_fun")
    check_callable("cond", false_fun, "false_fun")
    given = _operands("cond", true_fun, operands, operand)
    if without_jit.runs_in_python(pred):
        return (true_fun if bool(_predicate(pred)) else false_fun)(*without_jit.make_arrays(given))
    return choose_branch("cond", _predicate(pred), ("true_fun", "false_fun"), (true_fun, false_fun), given)


def _cond_of_two(pred: Any, of_true: Any, true_fun: Any, of_false: Any, false_fun: Any) -> Any:
    """Call the form with one operand for each function, which JAX still takes."""
    return cond(pred, lambda x, _: true_fun(x), lambda _, x: false_fun(x), of_true, of_false)


def switch(index: Any, branches: Sequence[Callable[..., R]], *operands: Any, operand: Any = _NOT_GIVEN) -> R:
    """Apply one of several functions, `branches[index](*operands)`, for a traced `index`, which is clamped.

    Args:
      index: an integer scalar.
      branches: functions of the operands, giving pytrees of one structure and the same types.
      operands, operand: as of `cond`.
    Raises: TypeError if `index` is no integer scalar, `branches` is a function, an operand is no array, or the
      results differ: every leaf is named; ValueError if there are no branches.

    >>> switch(1, [lambda x: x + 1, lambda x: 2 * x], 10)
    Array(20, dtype=int32, weak_type=True)
    """
    if callable(branches):
        raise TypeError(f"switch: branches must be a sequence of functions, not {branches!r}.")
    functions = tuple(branches)
    if not functions:
        raise ValueError("switch: there are no branches to choose from.")
    names = [f"branch {i}" for i in range(len(functions))]
    for name, fun in zip(names, functions):
        check_callable("switch", fun, name)
    given, which = _operands("switch", functions[0], operands, operand), _index(index, len(functions))
    if len(functions) == 1:
        return functions[0](*without_jit.make_arrays(given))
    if without_jit.runs_in_python(index):
        return functions[int(which)](*without_jit.make_arrays(given))
    return choose_branch("switch", which, names, functions, given)


def _operands(who: str, fun: Any, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is not _NOT_GIVEN:
        if operands:
            raise TypeError(f"{who}: operand= is the only operand, but {len(operands)} more were given by position.")
        operands = (operand,)
    check_operands(who, fun, holding(operands))
    return operands


def check_operands(who: str, fun: Any, operands: Sequence[Any]) -> None:
    """Check the operands. Raises: TypeError naming the first leaf that is no array, as the first function names it."""
    for i, x in enumerate(operands):
        if not all(map(is_arraylike, pytree.leaves(x))):
            check_arrays(f"{who}: operand {argument_name(fun, i)}{{}}", x, CLOSE_OVER)


def choose_branch(
    who: str, index: Any, names: Sequence[str], functions: Sequence[Any], operands: tuple[Any, ...]
) -> Any:
    """Trace each function once, and return the results of the one `index` chooses: for a boolean, the first if true."""
    held = holding(operands)
    leaves, tree = pytree.flatten(held)
    called = {id(f): f if held is operands else references.lending(who, f) for f in functions}
    avals = [aval_of(x) for x in leaves]
    for name, f in zip(names, functions):
        check_takes(f"{who}: {name}, {core.describe_function(f)},", f, len(operands), "the operands")
    traced = {
        id(f): trace(who, f, lambda *xs, f=f: called[id(f)](*pytree.unflatten(tree, xs)), avals, taking_references=True)
        for f in {id(f): f for f in functions}.values()
    }
    bodies = references.align_references([traced[id(f)] for f in functions])
    programs, consts = join_branches(who, names, functions, bodies)
    in_order = programs[::-1] if aval_of(index).dtype == np.dtype(bool) else programs
    outs = forwarding.cond(index, [*consts, *leaves, *values_of(bodies[0].references)], in_order)
    return pytree.unflatten(pytree.structure(bodies[0].result), references.put_back(bodies, outs))


_CHOICE = "\n  Use tnp.where or lax.select_n to choose for each element."


def _predicate(pred: Any) -> Any:
    """Convert a predicate to a boolean scalar."""
    aval = _scalar("cond: the predicate", "a boolean or a number", pred)
    if dtypes.is_bool(aval.dtype):
        return pred
    if dtypes.is_complex(aval.dtype):
        raise TypeError(f"cond: the predicate must be a boolean or a real number, not {aval}.")
    return ne(pred, constant(0, aval))


def _index(index: Any, n: int) -> Any:
    """Clamp the index of one of n branches, and convert it to int32: masks compare the index that chooses."""
    aval = _scalar("switch: the index", "an integer", index)
    if not dtypes.is_integer(aval.dtype):
        raise TypeError(f"switch: the index must be an integer, not {aval}.")
    if dtypes.bits_of(aval.dtype) < 32:  # which may not hold n
        index = convert_element_type(index, np.int32)
    aval = aval_of(index)
    return convert_element_type(clamp(constant(0, aval), index, constant(n - 1, aval)), np.int32)


def _scalar(what: str, kind: str, x: Any, help: str = _CHOICE) -> ShapedArray:
    if not is_arraylike(x):
        raise TypeError(f"{what} must be {kind}, not {x!r} of type {type(x).__name__}.")
    aval = aval_of(x)
    if aval.shape:
        raise TypeError(f"{what} must be a scalar, not {aval}.{help}")
    return aval


# ---- loops ---------------------------------------------------------------------------------------------------


@overload
def while_loop(
    cond_fun: Callable[[Array], Any],
    body_fun: Callable[[Array], Any],
    init_val: Number,
    *,
    checkpoints: Checkpoints = None,
) -> Array: ...
@overload
def while_loop(
    cond_fun: Callable[[Carry], Any],
    body_fun: Callable[[Carry], Carry],
    init_val: Carry,
    *,
    checkpoints: Checkpoints = None,
) -> Carry: ...
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, *, checkpoints: Checkpoints = None
) -> Any:
    """Apply `body_fun` to the carry while `cond_fun` of the carry is true.

    Reverse mode saves the carry of at most `checkpoints` steps, however many there are, and computes the others again
    from these: never if there are at most that many steps; at most r times each if there are at most
    binomial(checkpoints + r, r + 1). Besides, it computes each step once more, for its residuals. Source: Wang, Moin &
    Iaccarino 2009.

    Args:
      cond_fun: carry -> boolean scalar.
      body_fun: carry -> carry, of the same structure and types.
      init_val: the carry to begin with, a pytree of arrays. Bare numbers take the type that `body_fun` gives them.
      checkpoints: how many states reverse mode saves, at least 1; 32 if None. A text such as "2GB", or
        `tl.checkpoint_policies.budget(limit)`: as many as fit in so many bytes, 1024 at most; a part from 0.0 to 1.0:
        in that part of the bytes that 32 need.
    Raises: TypeError if `cond_fun` gives anything else, the carry changes, when every leaf is named, or `checkpoints`
      is none of these; ValueError if it is less than 1. In reverse mode, NotImplementedError if a step needs the
      result of an `io_callback`, which happens once; ValueError for a budget that one state exceeds.

    >>> while_loop(lambda x: x < 100, lambda x: 2 * x, 3)
    Array(192, dtype=int32, weak_type=True)
    """
    check_callable("while_loop", cond_fun, "cond_fun")
    check_callable("while_loop", body_fun, "body_fun")
    check_arrays("while_loop: init_val{}", init_val, CLOSE_OVER)
    how = _saving("while_loop", checkpoints)
    if config.disable_jit:
        first = without_jit.make_arrays(init_val)
        if without_jit.runs_in_python(more := cond_fun(first)):
            return without_jit.while_loop(cond_fun, body_fun, first, more)
    tree = pytree.structure(init_val)

    def of(fun: Callable[[Any], Any], avals: Sequence[ShapedArray]) -> TracedBody:
        return trace("while_loop", fun, lambda *xs: fun(pytree.unflatten(tree, xs)), avals, taking_references=True)

    body, carry = unify_carry_types(
        "while_loop", body_fun, init_val, lambda avals: of(body_fun, avals), lambda out: out
    )
    condition = of(cond_fun, [aval_of(x) for x in carry])
    _check_condition(cond_fun, condition)
    condition, body = references.align_references([condition, body])
    test = references.verdict_only(cond_fun, condition)
    outs = forwarding.while_loop(test, body, [*carry, *values_of(body.references)], **how)
    return pytree.unflatten(tree, references.put_back([body], outs))


def _saving(who: str, checkpoints: Any) -> dict[str, Any]:
    """Return the argument of `forwarding.while_loop` that runs a loop with checkpoints; none if none are asked for."""
    return {} if checkpoints is None else {"loop": loop_checkpoints.while_with(who, checkpoints)}


def _check_condition(cond_fun: Any, condition: TracedBody) -> None:
    avals = condition.jaxpr.out_avals
    if pytree.structure(condition.result) is not pytree.LEAF:
        found = pytree.describe_node(pytree.structure(condition.result))
    elif avals[0].shape or not dtypes.is_bool(avals[0].dtype):
        found = str(avals[0])
    else:
        return
    advice = " Reduce it with any() or all()." if avals and dtypes.is_bool(avals[0].dtype) and avals[0].shape else ""
    raise TypeError(
        f"while_loop: {core.describe_function(cond_fun)} must return a boolean scalar, but returned {found}.{advice}"
    )


@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Array], Any],
    init_val: Number,
    *,
    unroll: int | bool | None = None,
    checkpoint: Checkpoints = None,
    checkpoints: Checkpoints = None,
) -> Array: ...
@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Carry], Carry],
    init_val: Carry,
    *,
    unroll: int | bool | None = None,
    checkpoint: Checkpoints = None,
    checkpoints: Checkpoints = None,
) -> Carry: ...
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
    checkpoint: Checkpoints = None,
    checkpoints: Checkpoints = None,
) -> Any:
    """Run a counted loop: `for i in range(lower, upper): val = body_fun(i, val)`.

    If both bounds are known it is a scan, else a `while_loop`.

    Args:
      lower, upper: integer scalars; or both floats, whole numbers if they are known.
      body_fun: (i, val) -> val, of the same structure and types. `i` has the dtype of the bounds; between known floats
        it is an integer, as in JAX.
      init_val: what to begin with, a pytree of arrays. Bare numbers take the type that `body_fun` gives them.
      unroll, checkpoint: as of `scan`, if both bounds are known.
      checkpoints: as of `while_loop`: how many states reverse mode saves; with known bounds as `checkpoint`.
    Raises: TypeError if bounds are not integers of one dtype, or floats of one, or the carry changes: every leaf is
      named; ValueError for `unroll` or `checkpoint` with a traced bound, for both `checkpoint` and `checkpoints`, for
      known floats that are not whole; both as `scan` for `checkpoint`, as `while_loop` for `checkpoints`; OverflowError
      if the last step is known and does not fit the bounds' dtype.

    >>> fori_loop(0, 10, lambda i, total: total + i, 0)
    Array(45, dtype=int32, weak_type=True)
    """
    check_callable("fori_loop", body_fun, "body_fun")
    check_arrays("fori_loop: init_val{}", init_val, CLOSE_OVER)
    given, saving = (lower, upper), _saving("fori_loop", checkpoints)
    if checkpoint is not None and checkpoints is not None:
        raise ValueError(f"fori_loop: give checkpoint={checkpoint!r} or checkpoints={checkpoints!r}, not both.")
    how = options_of("fori_loop", checkpoints if checkpoint is None else checkpoint)
    lower, upper, index = _integer_bounds(lower, upper)
    counter = _counter_type(lower, upper)
    if checkpoint is not None and any(known_elements(x) is None for x in given):
        loop_checkpoints.refuse_traced_bounds(checkpoint, *given)
    _check_last_step(lower, upper, counter)
    if without_jit.runs_in_python(lower, upper):
        return without_jit.fori_loop(int(lower), int(upper), counter, body_fun, init_val)
    tree = pytree.structure(init_val)

    def step(i: Any, *xs: Any) -> Any:
        return add(i, constant(1, counter)), body_fun(index(i), pytree.unflatten(tree, xs))

    def traced(avals: Sequence[ShapedArray]) -> TracedBody:
        return trace("fori_loop", body_fun, step, [counter, *avals], taking_references=True)

    body, carry = unify_carry_types("fori_loop", body_fun, init_val, traced, lambda out: out[1], first=1)
    outs = _counted(lower, upper, counter, body, [*carry, *values_of(body.references)], unroll, how, saving)
    return pytree.unflatten(tree, references.put_back([body], outs)[1:])


def _integer_bounds(lower: Any, upper: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
    """Return integer bounds of as many steps, and the function from their steps to those of `lower` and `upper`.

    Steps between floats are counted, so that the loop ends where adding 1 to a float no longer changes it.
    """
    if not all(is_arraylike(x) and dtypes.is_float(aval_of(x).dtype) for x in (lower, upper)):
        return lower, upper, lambda i: i
    aval = _common_type(lower, upper)
    start, stop = known_elements(lower), known_elements(upper)
    if start is not None and stop is not None:
        return _whole("lower", start), _whole("upper", stop), lambda i: i
    first = as_type(lower, aval)
    steps = convert_element_type(ceil(sub(as_type(upper, aval), first)), np.dtype(np.int32))
    return 0, steps, lambda i: add(first, as_type(i, aval))


def _whole(name: str, x: Any) -> int:
    if not float(x).is_integer():
        raise ValueError(f"fori_loop: {name} must be a whole number, not {float(x)}.")
    return int(x)


def _counter_type(lower: Any, upper: Any) -> ShapedArray:
    """Return the type in which the steps are counted."""
    low, high = (_scalar(f"fori_loop: {name}", "an integer", x, "") for name, x in (("lower", lower), ("upper", upper)))
    for name, aval in (("lower", low), ("upper", high)):
        if not dtypes.is_integer(aval.dtype):
            raise TypeError(f"fori_loop: {name} must be an integer, not {aval}.")
    return _common_type(lower, upper)


def _common_type(lower: Any, upper: Any) -> ShapedArray:
    low, high = (_scalar(f"fori_loop: {name}", "a number", x, "") for name, x in (("lower", lower), ("upper", upper)))
    if low.dtype != high.dtype and not low.weak_type and not high.weak_type:
        raise TypeError(f"fori_loop: lower is {low}, but upper is {high}: convert one of them.")
    dtype, weak = dtypes.result_type(low, high)
    return ShapedArray((), dtype, weak)


def _check_last_step(lower: Any, upper: Any, counter: ShapedArray) -> None:
    """Raise OverflowError if the bounds are known and the last step does not fit the counter, which would wrap."""
    start, stop = known_elements(lower), known_elements(upper)
    if start is not None and stop is not None and int(start) < int(stop):
        dtypes.check_fits(int(stop) - 1, counter.dtype)


def _counted(
    lower: Any,
    upper: Any,
    counter: ShapedArray,
    body: TracedBody,
    carry: Sequence[Any],
    unroll: Any,
    how: dict[str, Any],
    saving: dict[str, Any],
) -> Any:
    """Return the carry after the loop, a counter first."""
    start, stop = known_elements(lower), known_elements(upper)
    if start is not None and stop is not None:
        length, first = max(int(stop) - int(start), 0), constant(int(start), counter)
        together = steps_at_once("fori_loop", 1 if unroll is None else unroll, length)
        return forwarding.scan(body, [first, *carry], (), length=length, reverse=False, unroll=together, **how)
    if unroll not in (None, False, 1):
        raise ValueError(
            f"fori_loop: unroll={unroll!r} needs bounds that are known, but {_which(lower, upper)} is traced."
        )
    first, last = as_type(lower, counter), as_type(upper, counter)

    def more(i: Any, *_: Any) -> Any:
        return lt(i, last)

    condition = trace("fori_loop", more, more, [counter, *map(aval_of, carry)])
    return forwarding.while_loop(condition, body, [first, *carry], **saving)


def _which(lower: Any, upper: Any) -> str:
    return "lower" if known_elements(lower) is None else "upper"
