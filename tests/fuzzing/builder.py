"""Building random programs: scopes, operands by type, statements whose result types are inferred by tracing.

Every float that a program holds has a bound that is kept small by scaling or squashing, so that derivatives of first
and second order stay of the order of one, and tolerances mean something.
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.fuzzing.program import DTYPES, KINDS, Block, Program, Statement, Var, walk
from tests.fuzzing.sizes import SMALL, WORK, Extent, drawn

LARGE_FAMILIES = (
    "rows",
    "pairs",
    "sums_of_products",
    "pooled",
)  # that large programs have beside those of their profile
NAMES: dict[str, Any] = {"tl": tl, "tnp": tnp, "lax": lax, "np": np}
LARGEST = 4.0  # of a value; what may be larger is scaled or squashed
CALLED = re.compile(r"\b(?:tnp|lax|tl)(?:\.\w+)+|\.at\[.*?\]\.\w+")
SQUASHES = ("tnp.tanh({})", "tnp.sin({})", "{c} * ({})", "{c} * ({})")


class Unfit(Exception):
    """A family found nothing to do here: another is drawn."""


class Refused(Exception):
    """Tracing an expression raised. Most often the generator asked for what is not defined."""

    def __init__(self, text: str, operands: Sequence[Var], error: BaseException) -> None:
        types = ", ".join(f"{v.dtype}{list(v.shape)}" for v in operands)
        super().__init__(f"{text}  of  {types}: {type(error).__name__}: {error}")
        self.error = error


class Profile:
    """What a run is about: families with weights, dtypes, sizes, how deep and how long programs are.

    `large` is the share of programs of large arrays, which have few statements.
    """

    def __init__(
        self,
        name: str,
        families: dict[str, float],
        *,
        floats: Sequence[str] = ("float64",),
        sizes: Sequence[int] = (1, 2, 3, 4, 5),
        depth: int = 2,
        statements: tuple[int, int] = (2, 6),
        body: tuple[int, int] = (1, 3),
        arguments: int = 3,
        special: bool = False,
        kinks: bool = False,
        rounded: bool = False,
        bits: int = 64,
        large: float = 0.1,
        accepts: Callable[[Program], bool] = lambda program: True,
    ) -> None:
        self.name, self.families, self.floats, self.sizes = name, families, tuple(floats), tuple(sizes)
        self.depth, self.statements, self.body, self.arguments = depth, statements, body, arguments
        self.kinks = kinks
        self.special, self.rounded, self.bits, self.accepts, self.large = special, rounded, bits, accepts, large


class Session:
    """What all scopes of one program share: randomness, names, arguments, what was used."""

    def __init__(self, profile: Profile, seed: Any, table: "Table") -> None:
        self.profile, self.table = profile, table
        self.rng = np.random.default_rng(seed)
        self.args: list[Var] = []
        self.names: Counter[str] = Counter()
        self.refused: list[Refused] = []
        self.forward_only = False
        self.float = str(self.rng.choice(profile.floats))
        self.sizes = tuple(int(n) for n in self.rng.choice(profile.sizes, 2))
        apart = np.random.default_rng((zlib.crc32(profile.name.encode()), *np.atleast_1d(seed)))  # not of what follows
        self.extent: Extent = drawn(apart, self.sizes) if apart.random() < profile.large else SMALL
        self.families = profile.families
        if self.extent.is_large and not (profile.special or profile.kinks or profile.rounded):
            share = 0.2 * sum(profile.families.values())
            self.families = profile.families | dict.fromkeys(LARGE_FAMILIES, share)
        self.left = 6 if self.extent.is_large else 30  # statements that may still be made

    def span(self, low_high: tuple[int, int]) -> tuple[int, int]:
        """How many statements a body gets: few where arrays are large."""
        low, high = low_high
        return (min(low, 2), min(high, 3)) if self.extent.is_large else low_high

    def name(self, stem: str) -> str:
        self.names[stem] += 1
        return f"{stem}{self.names[stem]}"


class Builder:
    """The statements of one function body; `outer` is the scope around it, whose variables are visible."""

    def __init__(
        self,
        session: Session,
        outer: "Builder | None" = None,
        params: Sequence[Var] = (),
        closed: bool = False,
        times: int = 1,
    ) -> None:
        self.closed = closed or (outer is not None and outer.closed)
        self.sees = None if closed else outer
        self.session, self.outer, self.rng = session, outer, session.rng
        self.statements: list[Statement] = []
        self.locals: list[Var] = list(params)
        self.depth: int = 0 if outer is None else outer.depth + 1
        self.used: set[Var] = set()
        self.family = ""
        self.times: int = times * (1 if outer is None else outer.times)  # that this body is mapped, or its steps kept

    @property
    def room(self) -> int:
        """Elements that an array of this body may have."""
        return self.session.extent.elements // self.times

    # ---- randomness

    def choice(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def number(self, low: float = 0.2, high: float = 1.5) -> float:
        return round(float(self.rng.uniform(low, high)), 2)

    def listed(self, draw: Callable[[], Any], n: int) -> str:
        """An array of n numbers that are drawn: all of them, or a few again and again."""
        if not self.session.extent.is_large:
            return f"np.array({[draw() for _ in range(n)]})"
        return f"np.resize({[draw() for _ in range(7)]}, {n})"

    # ---- variables in scope

    def visible(self) -> list[Var]:
        """Variables of this body first to last after those of the bodies around it."""
        return [*(self.sees.visible() if self.sees else [] if self.closed else self.session.args), *self.locals]

    def find(self, wanted: Callable[[Var], bool]) -> Var | None:
        """A variable, rather one of this body and rather a late one."""
        found = [v for v in self.visible() if wanted(v)]
        if not found:
            return None
        weights = np.array([(3.0 if v in self.locals else 1.0) * (1 + k / len(found)) for k, v in enumerate(found)])
        return found[int(self.rng.choice(len(found), p=weights / weights.sum()))]

    def pick(
        self,
        kinds: str = "f",
        *,
        ndim: int | None = None,
        least: int = 0,
        most: int | None = None,
        shape: Sequence[int] | None = None,
        dtype: str | None = None,
        full: bool = False,
        where: Callable[[Var], bool] = lambda v: True,
    ) -> Var:
        """A variable of one of `kinds` with so many axes or this shape; a new argument if there is none.

        `full`: it has elements.
        """
        most = self.session.extent.operand_axes if most is None else most

        def wanted(v: Var) -> bool:
            return (
                v.kind in kinds
                and (ndim is None or v.ndim == ndim)
                and least <= v.ndim <= most
                and (shape is None or v.shape == tuple(shape))
                and (dtype is None or v.dtype == dtype)
                and not (full and v.size == 0)
                and where(v)
            )

        found = self.find(wanted)
        if found is not None and not (len(self.session.args) < self.session.profile.arguments and self.chance(0.1)):
            return found
        made = self._new(kinds, ndim, least, most, shape, dtype)
        if not wanted(made):
            raise Unfit
        return made

    def _new(self, kinds: str, ndim: Any, least: int, most: int, shape: Any, dtype: str | None) -> Var:
        if shape is None:
            n = ndim if ndim is not None else self.integer(least, min(most, max(least, 2)))
            shape = self._shape(n, n if ndim is not None else most)
        kind = kinds[0]
        drawn = self.session.float if kind == "f" else str(self.choice(DTYPES[kind][:1] * 3 + DTYPES[kind]))
        return self.argument(shape, dtype or drawn)

    def _shape(self, n: int, most: int) -> tuple[int, ...]:
        """Of n axes; in large programs one is long, or it is the main shape if that has at most `most` axes."""
        extent = self.session.extent
        shape = tuple(self.size() for _ in range(n))
        if not extent.is_large or self.chance(0.3):
            return shape
        if n <= len(extent.main) <= most and self.chance(0.6):
            return extent.main
        at = self.integer(0, max(n - 1, 0))
        return tuple(extent.long if k == at and extent.long > 1 else m for k, m in enumerate(shape))

    def size(self) -> int:
        return self.choice(self.session.sizes)

    def argument(self, shape: Sequence[int], dtype: str) -> Var:
        """A new argument of the program; a constant once there are too many."""
        if self.session.extent.is_large and np.prod(shape, dtype=float) > self.session.extent.elements:
            raise Unfit
        if self.closed or len(self.session.args) >= self.session.profile.arguments + (2 if self.depth == 0 else 0):
            return self.constant(shape, dtype)
        bound = {"f": 1.0, "c": 1.0, "b": 1.0}.get(KINDS[dtype], 5.0)
        if bound == 5.0 and dtype.endswith(("32", "64")) and self.session.extent.is_large and self.chance(0.7):
            bound = float(self.session.extent.long)  # places all along the axis
        v = Var(self.session.name("x"), tuple(shape), dtype, bound)
        self.session.args.append(v)
        return v

    def constant(self, shape: Sequence[int], dtype: str) -> Var:
        """Numbers that are all different, none of them round."""
        n, kind = int(np.prod(shape)), KINDS[dtype]
        text = f"tnp.linspace(-.91, .97, {n})" if kind in "fc" else f"tnp.arange({n})"
        text = text + f".reshape({tuple(shape)})" if len(shape) != 1 else text
        return self.emit(f"{text}.astype('{dtype}')", bound=1.0 if kind in "fc" else max(n, 1), feature="constant")

    # ---- statements

    def emit(
        self, text: str, *operands: Var, bound: float | None = None, feature: str | None = None, squash: bool = True
    ) -> Var:
        """One variable for an expression; floats that could become large are scaled or squashed."""
        bound = sum((v.bound for v in operands if v.kind in "fc"), 1e-9) if bound is None else bound
        out = self._infer(text, operands)
        feature = feature or self._feature(text)
        if out.kind in "fc" and bound > LARGEST and squash:
            text, bound = self._squashed(text, out, bound)
            out = self._infer(text, operands)
        out = Var(self.session.name("v"), out.shape, out.dtype, float(bound))
        return self.append(Statement((out,), "{o0} = " + text, operands, (), feature))[0]

    def _squashed(self, text: str, out: Var, bound: float) -> tuple[str, float]:
        how = self.choice(SQUASHES[2:] if out.kind == "c" or bound > 20 else SQUASHES)
        c = float(f"{2.0 / bound:.1g}")
        if self.session.extent.is_large:  # what is about to be small would be compared with the tolerance of ones
            c = max(c, 0.02)
        return how.replace("{c}", str(c)).replace("{}", text), (c * bound if "{c}" in how else 1.0)

    def _feature(self, text: str) -> str:
        """The first function that a text calls, as the report counts it."""
        called = CALLED.search(text)
        return called.group() if called else self.family

    def append(self, statement: Statement) -> tuple[Var, ...]:
        self.statements.append(statement)
        self.locals.extend(statement.outs)
        self.session.left -= 1
        return statement.outs

    def _infer(self, text: str, operands: Sequence[Var]) -> Var:
        """The type of an expression, by tracing it. Raises: Unfit if it, or what it is made of, is too large."""
        names = [f"a{i}" for i in range(len(operands))]
        code = f"lambda {', '.join(names)}: {text.format(*names)}"
        structs = [tl.ShapeDtypeStruct(v.shape, tnp.dtype(v.dtype)) for v in operands]
        try:
            f = eval(code, dict(NAMES))
            out = tl.eval_shape(f, *structs)
            fits = not self.session.extent.is_large or fit(tl.make_jaxpr(f)(*structs), self.room)
        except Exception as error:
            raise Refused(text, operands, error) from error
        if isinstance(out, tuple) or out.size > self.room or len(out.shape) > self.session.extent.axes or not fits:
            raise Unfit
        return Var("", tuple(out.shape), str(out.dtype))

    # ---- nested functions

    def nested(self, params: Sequence[Var], closed: bool = False, times: int = 1) -> "Builder":
        """A body within this one; if `closed`, one that reads its parameters only; `times` it is mapped or kept."""
        if self.session.extent.is_large and any(
            v.size * times * self.times > self.session.extent.elements for v in params
        ):
            raise Unfit
        return Builder(self.session, self, params, closed, times if self.session.extent.is_large else 1)

    def param(self, like: Var, shape: Sequence[int] | None = None, bound: float | None = None) -> Var:
        shape = like.shape if shape is None else tuple(shape)
        return Var(self.session.name("p"), shape, like.dtype, like.bound if bound is None else bound)

    def fill(self, count: int) -> None:
        """Append about so many statements of random families."""
        table, weights = self.session.table, self.session.families
        names = list(weights)
        p = np.array([weights[n] for n in names])
        p /= p.sum()
        goal, attempts = len(self.statements) + count, 0
        while len(self.statements) < goal and attempts < 20 * count and self.session.left > 0:
            attempts += 1
            self.family = str(self.rng.choice(names, p=p))
            before = len(self.statements), len(self.locals)
            try:
                table[self.family](self)
            except (Unfit, Refused) as why:
                del self.statements[before[0] :], self.locals[before[1] :]
                if isinstance(why, Refused):
                    self.session.refused.append(why)

    def body(self) -> None:
        self.fill(self.integer(*self.session.span(self.session.profile.body)))

    def like(self, target: Var, *, least_bound: float = 0.0) -> Var:
        """A variable of this type: a late one of this body, or one made of `target` and something that was computed."""
        fit = [v for v in self.locals if v.same_type(target) and v is not target and v not in self.used]
        limit = max(target.bound, least_bound)
        family, self.family = self.family, "like"
        try:
            v = fit[-1] if fit and self.chance(0.8) else self._mixed(target)
            if v.kind in "fc" and v.bound > limit:
                v = self.emit(f"{float(f'{limit / v.bound:.1g}')} * {{0}}", v, bound=limit, squash=False)
                v = v if v.same_type(target) else self.emit(f"{{0}}.astype('{target.dtype}')", v, bound=v.bound)
            self.used.add(v)
            return v
        finally:
            self.family = family

    def _mixed(self, target: Var) -> Var:
        if target.kind in "fc" and self.chance(0.3):
            made = self.emit(
                self.choice(("1.2 * {0}", "-{0}", "{0} * {0}", "tnp.flip({0})")), target, bound=1.2 * target.bound**2
            )
        elif target.kind in "fc":
            other = self.pick("f" + ("c" if target.kind == "c" else ""))
            text = "{0}" if other.ndim == 0 else "tnp.sum({0})"
            made = self.emit(f"0.6 * {{1}} + 0.3 * tnp.tanh({text})", other, target, bound=0.6 * target.bound + 0.3)
        elif target.kind == "b":
            made = self.emit("~{0}", target)
        else:
            made = self.emit("{0} + 1", target)
        if not made.same_type(target):
            made = self.emit(f"{{0}}.astype('{target.dtype}')", made, bound=made.bound)
        if not made.same_type(target):
            raise Unfit
        return made

    def last(self, kinds: str = "f", most: int | None = None) -> Var:
        """What this body computed last, if it is of one of these kinds; something visible otherwise."""
        most = self.session.extent.operand_axes if most is None else most
        fit = [v for v in self.locals if v.kind in kinds and v.ndim <= most and v not in self.used]
        if not fit or self.chance(0.1):
            return self.pick(kinds, most=most)
        self.used.add(fit[-1])
        return fit[-1]

    def block(self, stem: str, head: str, unpack: str, result: str, results: Sequence[Var]) -> Block:
        """The finished body as a nested function; `head` and `unpack` name its parameters."""
        params = tuple(v for v in self.locals if v.name.startswith("p"))
        return Block(self.session.name(stem), head, params, unpack, tuple(self.statements), result, tuple(results))


def fit(jaxpr: Any, room: int) -> bool:
    """Whether all arrays of a program have at most so many elements, and their windows not many times more."""
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    if len(inner.eqns) + sum(len(eqn.outvars) for eqn in inner.eqns) > 2 * EQUATIONS:
        return False
    return all(_equation_fits(eqn, room) for eqn in inner.eqns)


def _equation_fits(eqn: Any, room: int) -> bool:
    sizes = [int(np.prod(v.aval.shape)) for v in eqn.outvars]
    window = eqn.params.get("window_dimensions") or ()
    if eqn.primitive.name == "conv_general_dilated":
        window = eqn.invars[1].aval.shape
    if max(sizes, default=0) > room or sum(sizes) * int(np.prod(window)) > WORK:
        return False
    nested = [p for p in eqn.params.values() for p in (p if isinstance(p, tuple) else (p,))]
    return all(fit(p, room) for p in nested if hasattr(getattr(p, "jaxpr", p), "eqns"))


EQUATIONS = 300  # of one expression: what unrolls a long axis is left out, as compiling it takes minutes
Table = dict[str, Callable[[Builder], None]]


def build(profile: Profile, seed: int, table: Table) -> tuple[Program, list[Refused]]:
    """A random program of a profile, and the expressions that were refused on the way."""
    attempts = ((seed, k) if k else seed for k in range(50))
    for attempt in attempts:
        program, refused = _attempt(Session(profile, attempt, table))
        if profile.accepts(program):
            return program, refused
    raise Unfit(f"no program of profile {profile.name}")


def _attempt(session: Session) -> tuple[Program, list[Refused]]:
    profile = session.profile
    top = Builder(session)
    top.argument(session.extent.main or [top.size() for _ in range(top.integer(1, 2))], session.float)
    top.fill(top.integer(*session.span(profile.statements)))
    read = {v for s in walk(top.statements) for v in s.operands} | {
        v for s in walk(top.statements) for b in s.blocks for v in b.results
    }
    loose = [v for v in top.locals if v not in read]
    results = loose[-4:] or top.locals[-1:] or session.args[:1]
    features = frozenset(s.feature for s in walk(top.statements))
    program = Program(
        tuple(session.args),
        tuple(top.statements),
        tuple(results),
        session.forward_only,
        features=features,
        special=profile.special,
        kinks=profile.kinks,
        rounded=profile.rounded,
    )
    return program, session.refused
