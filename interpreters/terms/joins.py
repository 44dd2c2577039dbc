"""Terms with entries of several relations at one index: what one relation sums becomes an array that another reads.

Search terms: variable elimination, sparse matrix chain, join, composite key, factorized query. In the term
`y[i] += Σ e d. [i = r[e]] [j = c[e]] [j = r[d]] [k = c[d]] x[k]` only j connects d with the rest. So z[j], summed over
d, is computed first, and then y over e: as many operations as entries, not as pairs of them. If two relations share two
indices or more, `[i = r[e]] [j = c[e]] [i = r[d]] [j = c[d]]`, the pair becomes one index, the rank of its value among
those of all entries. Left out: what more than one index connects with the rest, as the third side of a triangle.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tapeless.interpreters import limits
from tapeless.interpreters.writer import Writer
from tapeless.tracer import numpy as tnp
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.staging import trace_closed
from tapeless.tracer.terms.affine import Variable, variable
from tapeless.tracer.terms.term import Bracket, Lookup, Read, Term, term, variables_in


class Split(NamedTuple):
    """A term split in two: its part, the array z[v], and the rest of it, which reads this as operand number k."""

    part: Term
    size: int
    rest: Callable[[int], Term]


def split_at_index(t: Term) -> Split | None:
    """Find a part of a term that one index connects with the rest, both with entries at it; None if none is."""
    parts = [_TermPart(("factor", k), variables_in(f.access)) for k, f in enumerate(t.factors)]
    parts += [_TermPart(("bracket", k), _variables(b)) for k, b in enumerate(t.brackets)]
    result = variables_in(t.out)
    for v in sorted({v for b in t.brackets for v, _ in _found(b)}):
        for own in _components(parts, v):
            inside = [t.brackets[k] for p in own for kind, k in [p.place] if kind == "bracket"]
            outside = [b for b in t.brackets if b not in inside]
            is_shared = all(any(v == u for b in some for u, _ in _found(b)) for some in (inside, outside))
            variables = frozenset[Variable]().union(*[p.variables for p in own]) - {v}
            if is_shared and variables.isdisjoint(result):
                return _split(t, v, variables, own)
    return None


class _TermPart(NamedTuple):
    """A factor or a bracket of a term, by its number, and its variables."""

    place: tuple[str, int]
    variables: frozenset[Variable]


def _components(parts: Sequence[_TermPart], v: Variable) -> Iterator[list[_TermPart]]:
    """Group the parts of a term that are connected by variables other than v."""
    left = [p for p in parts if p.variables - {v}]
    while left:
        own, found = [left.pop(0)], True
        while found:
            variables = frozenset[Variable]().union(*[p.variables for p in own]) - {v}
            found = [p for p in left if not p.variables.isdisjoint(variables)]
            left = [p for p in left if p not in found]
            own += found
        yield own


def _split(t: Term, v: Variable, variables: frozenset[Variable], own: Sequence[_TermPart]) -> Split:
    places = {p.place for p in own}

    def chosen(is_own: bool) -> tuple[list[Read], list[Bracket]]:
        factors = [f for k, f in enumerate(t.factors) if (("factor", k) in places) is is_own]
        return factors, [b for k, b in enumerate(t.brackets) if (("bracket", k) in places) is is_own]

    at = (variable(v),)
    part = term(at, {u: t.sizes[u] for u in (v, *variables)}, *chosen(True))
    sizes = {u: n for u, n in enumerate(t.sizes) if u not in variables}

    def rest(k: int) -> Term:
        factors, brackets = chosen(False)
        return term(t.out, sizes, [*factors, Read(k, at)], brackets, t.coefficient)

    return Split(part, t.sizes[v], rest)


def _variables(b: Bracket) -> frozenset[Variable]:
    access = b.access if isinstance(b, Lookup) else ()
    return variables_in((b.index, *access))


def _found(b: Bracket) -> Iterator[tuple[Variable, Lookup]]:
    """List the variable that a lookup has one value of, and the lookup."""
    if isinstance(b, Lookup) and (found := b.index.signed_variable) is not None:
        yield found[0], b


# ---- several indices as one ------------------------------------------------------------------------------------


class SharedIndices(NamedTuple):
    """Indices that the entries of two relations have in common: the lookups of each, in one order, and their sizes."""

    lookups: tuple[tuple[Lookup, ...], tuple[Lookup, ...]]
    sizes: tuple[int, ...]


def shared_indices(t: Term) -> SharedIndices | None:
    """Find two relations of a term whose entries have two indices in common, or more."""
    groups = dict[Variable, dict[Variable, Lookup]]()
    for b in t.brackets:
        for v, found in _found(b):
            entry = found.access[0].variable if len(found.access) == 1 else None
            if entry is not None:
                groups.setdefault(entry, {}).setdefault(v, found)
    for a, b in combinations(groups.values(), 2):
        common = sorted(a.keys() & b.keys())
        sizes = tuple([t.sizes[v] for v in common])
        if len(common) > 1 and prod(sizes) < limits.JOINT_VALUES:
            return SharedIndices((tuple([a[v] for v in common]), tuple([b[v] for v in common])), sizes)
    return None


def with_one_index(t: Term, shared: SharedIndices, ranks: tuple[int, int]) -> Term:
    """Look up ranks of the values of shared indices, in operands of these numbers, in the place of the second ones."""
    g, n = variable(len(t.sizes)), sum(t.sizes[own[0].access[0].variables[0][0]] for own in shared.lookups)
    looked_up = [Lookup(g, k, own[0].access) for k, own in zip(ranks, shared.lookups)]
    brackets = [*[b for b in t.brackets if b not in shared.lookups[1]], *looked_up]
    return term(t.out, (*t.sizes, n), t.factors, brackets, t.coefficient)


def ranks_of_entries(w: Writer, shared: SharedIndices, operands: Sequence[Atom]) -> list[Atom]:
    """Write the ranks of the values of shared indices among those of all entries, -1 where one is out of range."""
    arrays = [[operands[b.operand] for b in own] for own in shared.lookups]

    def ranks(*given: Any) -> Sequence[Any]:
        n = len(arrays[0])
        keys = [_keys(own, xs, shared.sizes) for own, xs in zip(shared.lookups, (given[:n], given[n:]))]
        every, count = tnp.concatenate(keys), keys[0].shape[0]
        order = tnp.argsort(every)
        ordered = every[order]
        is_new = tnp.concatenate([tnp.zeros(1, bool), ordered[1:] != ordered[:-1]])
        found = tnp.zeros(every.shape, np.int32).at[order].set(tnp.cumsum(is_new.astype(np.int32)))
        found = tnp.where(every < 0, -1, found)
        return found[:count], found[count:]

    atoms = [x for own in arrays for x in own]
    program = trace_closed(ranks, [x.aval for x in atoms])
    return w.inlined(program, atoms)


def _keys(lookups: Sequence[Lookup], arrays: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Number the values of several indices together, in mixed radix; -1 where one is out of range."""
    total, is_inside = 0, True
    for b, x, n in zip(lookups, arrays, sizes, strict=True):
        if x.dtype == np.uint64:
            x = tnp.minimum(x, 2**63 - 1)
        x = x.astype(np.int64)
        x = x if b.limits is None or b.is_within else tnp.clip(x, *b.limits)
        ((_, sign),) = b.index.variables
        x = (x - b.index.constant) * sign
        total, is_inside = total * n + x, is_inside & (x >= 0) & (x < n)
    return tnp.where(is_inside, total, -1)
