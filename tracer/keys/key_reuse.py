"""Detect random keys that are used twice: `config.debug_key_reuse`.

A program is read, not run (abstract interpretation): each key is an object, and the value of a variable of keys is a
NumPy array of such objects, to which rules of shape operations apply. Drawing numbers from a key, and splitting it,
spend it; `fold_in` and `key_data` do not; `clone` makes another key. A loop is read as two steps, the second on the
carry of the first; branches are read each on its own, as one is taken. Rematerialization in a linear jaxpr spends
nothing. Left out: which keys a traced index selects. Such a key counts as used only if all candidates are used, and
using it uses none of them.
Source: the analysis follows `jax.experimental.key_reuse`, which knows a key by its variable.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from tapeless.tracer import dtypes
from tapeless.tracer.bodies import EACH, Body, ForwardAnalysis, bodies_of
from tapeless.tracer.errors import KeyReuseError
from tapeless.tracer.jaxpr import Equation, Jaxpr, Literal, Var
from tapeless.tracer.primitives import checkpoint as c
from tapeless.tracer.primitives import elementwise as e
from tapeless.tracer.primitives import shape as s
from tapeless.tracer.primitives.indexing import dynamic_slice_p
from tapeless.tracer.primitives.random import random_unwrap_p
from tapeless.tracer.rules import Rules
from tapeless.tracer.source import Source
from tapeless.tracer.types import ShapedArray, holds_keys

Known = np.ndarray[Any, Any] | None  # the key objects of a value of keys; an integer that is known; else None
Values = Sequence[Known]

rules: Final = Rules(
    "key use",
    "rule(reader, eqn, *keys) -> key objects of the results, each None if it holds no keys; or None, for no answer",
    absent="each key of its results may be any key of its operands",
)


class KeyObject:
    """One key: where it was used; `among`: the candidates, if it was selected by a traced index."""

    __slots__ = ("among", "used_at")

    def __init__(self, among: tuple["KeyObject", ...] = ()) -> None:
        self.among: Final = among
        self.used_at: str = ""


def new_keys(shape: tuple[int, ...], among: Iterable[KeyObject] = ()) -> np.ndarray[Any, Any]:
    """Make an array of objects of unused keys; each may be one of the keys `among`."""
    found, options = np.empty(shape, object), tuple(among)
    for i in np.ndindex(shape):
        found[i] = KeyObject(options)
    return found


def check(jaxpr: Jaxpr) -> None:
    """Check that a program uses no key twice. Raises: KeyReuseError naming both lines."""
    KeyReader().read(jaxpr, [_new(v.aval) for v in jaxpr.invars])


class KeyReader:
    """The analysis of programs: records where each key is used.

    here: the line that runs the program, named instead of the program's own lines if a key was used before the program.
    """

    def __init__(self, here: str = "") -> None:
        self._used: dict[KeyObject, str] = {}
        self._here = here

    def read(self, jaxpr: Jaxpr, given: Values) -> list[Known]:
        """Compute the key objects of the results from those of the inputs. Raises: KeyReuseError naming both lines."""
        env: dict[Any, Known] = dict(zip(jaxpr.invars, given, strict=True))

        def of(v: Any) -> Known:
            return find_keys(v.value, v.aval) if isinstance(v, Literal) else env.get(v)

        for eqn in jaxpr.eqns:
            if eqn.primitive.takes_keys:
                env.update(zip(eqn.outvars, self._read_equation(eqn, [*map(of, eqn.invars)]), strict=True))
        return [*map(of, jaxpr.outvars)]

    def spend(self, keys: np.ndarray[Any, Any], place: str) -> None:
        """Record that keys are used at `place`. Raises: KeyReuseError if one of them was used before."""
        for key in keys.flat:
            first = self._where_used(key)
            if first:
                raise _error(first, self._here if key.used_at and self._here else place)
            self._used[key] = place

    def branch(self, run: Callable[[], Values]) -> tuple[Values, dict[KeyObject, str]]:
        """Call `run`, which reads one of several programs; return its results and all uses, which are not recorded."""
        before = self._used
        self._used = dict(before)
        found = run()
        after, self._used = self._used, before
        return found, after

    def note(self, uses: dict[KeyObject, str]) -> None:
        """Record uses that `branch` returned."""
        self._used.update(uses)

    def settle(self) -> None:
        """Store the uses in the key objects, as the program was run."""
        for key, place in self._used.items():
            key.used_at = self._here or place

    def _where_used(self, key: KeyObject) -> str:
        found = self._used.get(key) or key.used_at
        if found or not key.among:
            return found
        uses = [self._where_used(option) for option in key.among]
        return uses[0] if all(uses) else ""

    def _read_equation(self, eqn: Equation, keys: Values) -> Values:
        rule = rules.get(eqn.primitive, _bodies if eqn.primitive.carries_programs else None)
        found = rule(self, eqn, *keys) if rule is not None else None
        return _chosen(eqn, keys) if found is None else found


def _new(aval: ShapedArray, among: Iterable[KeyObject] = ()) -> Known:
    return new_keys(aval.shape, among) if holds_keys(aval) else None


def _chosen(eqn: Equation, keys: Values) -> Values:
    """Make key objects for the results of an equation without a rule: each may be any key of its operands."""
    if not any(holds_keys(v.aval) for v in eqn.outvars):
        return [None] * len(eqn.outvars)
    options = [key for each in keys if each is not None and _are_keys(each) for key in each.flat]
    return [_new(v.aval, options) for v in eqn.outvars]


def find_keys(x: Any, aval: ShapedArray) -> Known:
    """Return the key objects of a concrete value, or the value if it is an integer scalar (an index); else None."""
    if holds_keys(aval):
        return x.key_objects
    return np.asarray(x) if not aval.shape and dtypes.is_integer(aval.dtype) else None


def _are_keys(x: Any) -> bool:
    return x is not None and x.dtype == object


def _place(source: Source | None) -> str:
    return source.describe() if source else "a line that is not known"


def _error(first: str, second: str) -> KeyReuseError:
    again = f"and at\n    {second}" if first != second else "which is run again, or draws from one key several times"
    return KeyReuseError(
        f"a random key is used twice, and the same numbers are drawn: at\n    {first},\n  {again}.\n"
        "  Use every key once: key, subkey = random.split(key). If it is meant, say so: random.clone(key)."
    )


# ---- primitives that use keys --------------------------------------------------------------------------------


def _unwrap(reader: KeyReader, eqn: Equation, keys: Any) -> Values:
    if eqn.params["spends"]:
        reader.spend(keys, _place(eqn.source))
    return (None,)


rules[random_unwrap_p] = _unwrap


# ---- primitives that move keys -------------------------------------------------------------------------------


def _moves(primitive: Any, move: Callable[..., Any]) -> None:
    """Enter the rule of a primitive with one result, which `move(*keys, **params)` computes on NumPy arrays of keys."""

    def rule(reader: KeyReader, eqn: Equation, *keys: Any) -> Values | None:
        return (move(*keys, **eqn.params),) if holds_keys(eqn.outvars[0].aval) else (None,)

    rules[primitive] = rule


def _broadcast(x: Any, *, shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    sizes = [x.shape[dims.index(d)] if d in dims else 1 for d in range(len(shape))]
    return np.broadcast_to(x.reshape(sizes), shape)


def _slice(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    return x[tuple(map(slice, start_indices, limit_indices, strides))]


def _split(reader: KeyReader, eqn: Equation, x: Any) -> Values:
    if not _are_keys(x):
        return [None] * len(eqn.outvars)
    return np.split(x, np.cumsum(eqn.params["sizes"])[:-1], eqn.params["axis"])


def _dynamic_slice(reader: KeyReader, eqn: Equation, x: Any, *starts: Any) -> Values | None:
    if not _are_keys(x) or any(i is None for i in starts):
        return None
    sizes = eqn.params["slice_sizes"]
    places = [min(max(int(i), 0), n - size) for i, n, size in zip(starts, x.shape, sizes, strict=True)]
    return (x[tuple(slice(place, place + size) for place, size in zip(places, sizes))],)


_moves(s.broadcast_in_dim_p, _broadcast)
_moves(s.reshape_p, lambda x, shape: x.reshape(shape))
_moves(s.transpose_p, lambda x, permutation: x.transpose(permutation))
_moves(s.rev_p, lambda x, dimensions: np.flip(x, dimensions))
_moves(s.concatenate_p, lambda *xs, dimension: np.concatenate(xs, dimension))
_moves(s.slice_p, _slice)
rules[s.split_p] = _split
rules[dynamic_slice_p] = _dynamic_slice
for _p in (c.name_p, c.move_p, c.materialize_p, e.copy_p, e.stop_gradient_p):
    _moves(_p, lambda x, **_: x)
rules[c.optimization_barrier_p] = lambda reader, eqn, *keys: keys


# ---- primitives that carry programs --------------------------------------------------------------------------


class _KeysOfBodies(ForwardAnalysis[Known]):
    """The reading of the bodies of one equation. Loops are read as two steps, or step by step if keys are stacked."""

    joins = False

    def __init__(self, reader: KeyReader, given: Values) -> None:
        self._reader, self._given = reader, given

    def run(self, eqn: Equation, body: Body, given: Values) -> list[Known]:
        return self._reader.read(body.jaxpr, given)

    def peeled(self, eqn: Equation, steps: range | None) -> int:
        bodies = bodies_of(eqn)
        by_step = bodies is not None and (
            any(_are_keys(self._given[at]) for at in bodies.operands(EACH))
            or any(holds_keys(eqn.outvars[at].aval) for body in bodies.each for at in body.stacked())
        )
        return 2 if steps is None else len(steps) if by_step else min(2, len(steps))

    def carried(self, x: Known) -> Known:
        return x if _are_keys(x) else None  # an integer changes

    def element(self, x: Known, k: int | None) -> Known:
        return x[k, ...] if x is not None and _are_keys(x) else None

    def stacked(self, v: Var, elements: Values) -> Known:
        return _stacked(elements, v.aval)

    def alternatives(self, eqn: Equation, runs: Sequence[Callable[[], Values]]) -> list[Values]:
        readings = [self._reader.branch(run) for run in runs]
        for _, uses in readings:
            self._reader.note(uses)
        return [[_one_of(results) for results in zip(*[found for found, _ in readings], strict=True)]]


def _bodies(reader: KeyReader, eqn: Equation, *keys: Any) -> Values | None:
    """Read the bodies of an equation; None if it has none, or is a linear call, which spends nothing."""
    bodies = bodies_of(eqn)
    if bodies is None or (not bodies.loops and bodies.selector is None and any(bodies.each[0].jaxpr.linear_in)):
        return None
    return _KeysOfBodies(reader, keys).through(eqn, bodies, keys)


def _one_of(results: Sequence[Any]) -> Known:
    """Join the keys that several branches return: each key of the result is one of theirs at its place."""
    if not _are_keys(results[0]) or all(np.array_equal(x, results[0]) for x in results):
        return results[0] if _are_keys(results[0]) else None
    found = np.empty(results[0].shape, object)
    for i in np.ndindex(found.shape):
        found[i] = KeyObject(tuple(x[i] for x in results))
    return found


def _stacked(steps: Values, aval: ShapedArray) -> Known:
    if not holds_keys(aval):
        return None
    return np.stack([keys for keys in steps if keys is not None]) if steps else new_keys(aval.shape)
