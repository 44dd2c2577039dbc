"""Linear maps as values: the results of `linearize`, `vjp` and `linear_transpose`.

A map is a linear jaxpr with its residuals. It is a pytree whose leaves are the residuals, so compiled functions, loops
and `vmap` take and return it; the linear jaxpr is auxiliary data, equal for equivalent programs, so that linearizing
one function at another point gives a map of the same structure.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tapeless.arguments.argument_checks import structure
from tapeless.batch.vmap import vmap
from tapeless.differentiate.equivalence import form_of
from tapeless.differentiate.references import NotNeeded, entries_of, place_cotangent
from tapeless.differentiate.tangents import direction, instantiate_tangents, own_array, tangents_of
from tapeless.interpreters import linear_operators
from tapeless.interpreters.linearize import LinearizedJaxpr
from tapeless.interpreters.zero import Zero, instantiate
from tapeless.tracer import dtypes, pytree
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr
from tapeless.tracer.late_imports import LateModule
from tapeless.tracer.numpy import arithmetic, asarray, concatenate, diagonal, eye, ravel, zeros
from tapeless.tracer.primitives.elementwise import convert_element_type
from tapeless.tracer.primitives.shape import reshape
from tapeless.tracer.types import ShapedArray, aval_of, is_arraylike

if TYPE_CHECKING:
    from tapeless.differentiate import costs
else:
    costs = LateModule("tapeless.differentiate.costs")


class TangentSpace(NamedTuple):
    """Space of tangents or cotangents: a pytree with the types of its primals; integers have only 0."""

    tree: Any
    avals: tuple[ShapedArray, ...]

    @classmethod
    def of_arguments(cls, tree: Any, avals: tuple[ShapedArray, ...]) -> "TangentSpace":
        """Make the space of arguments from the structure of their tuple; a single argument has no tuple around it."""
        return cls(tree.children[0] if len(tree.children) == 1 else tree, avals)

    @property
    def inexact(self) -> list[ShapedArray]:
        """The types of the leaves that have tangents."""
        return [aval for aval in self.avals if dtypes.is_inexact(aval.dtype)]

    @property
    def size(self) -> int:
        """The dimension: how many numbers an element has."""
        return sum(aval.size for aval in self.inexact)

    @property
    def is_complex(self) -> bool:
        """Tell whether some of these numbers are complex."""
        return any(dtypes.is_complex(aval.dtype) for aval in self.avals)

    @property
    def is_real(self) -> bool:
        """Tell whether some of these numbers are real."""
        return any(not dtypes.is_complex(aval.dtype) for aval in self.inexact)

    @property
    def arguments(self) -> Any:
        """The structure of the arguments of a map from this space: a tuple stands for several."""
        several = self.tree.kind is tuple and len(self.tree.children) != 1
        return self.tree if several else pytree.treedef_tuple([self.tree])

    def leaves(self, args: tuple[Any, ...], who: str) -> list[Any]:
        """Take an element apart, given as one argument or as several. Raises: TypeError if its structure differs."""
        if len(args) == 1:
            leaves, tree = pytree.flatten(args[0])
            if tree == self.tree:
                return leaves
        leaves, tree = pytree.flatten(args)
        if tree == self.tree:
            return leaves
        told = pytree.compare(self.arguments, tree, ("the arguments", "the tangents"))
        raise TypeError(f"{who}: tangents must have the structure of the arguments.{told}")

    def element(self, values: Sequence[Any], tree: Any = None) -> Any:
        """Put an element together, from arrays or `Zero` for the leaves that have tangents; integers get float0."""
        given = iter(values)
        zeros = [Zero(aval.tangent()) for aval in self.avals]
        full = [z if z.aval.dtype == dtypes.float0 else next(given) for z in zeros]
        return pytree.unflatten(tree or self.tree, instantiate_tangents(full))

    def holds(self, other: "TangentSpace") -> bool:
        """Tell whether two spaces are one: structures, shapes and dtypes of their elements are the same."""
        ours, theirs = [_form(aval) for aval in self.avals], [_form(aval) for aval in other.avals]
        return self.tree == other.tree and ours == theirs

    def __str__(self) -> str:
        return structure(self.tree, self.avals)


def _form(aval: ShapedArray) -> Any:
    return aval.shape, aval.tangent().dtype


class MapType:
    """The static part of a linear map, without its residuals; equal for equivalent programs between the same spaces."""

    def __init__(
        self,
        program: LinearizedJaxpr,
        domain: TangentSpace,
        codomain: TangentSpace,
        who: str = "linear map",
        name: str = "linear map",
        complex_linear: bool = False,
    ) -> None:
        self.jaxpr: Final = program.jaxpr
        self.nonzero: Final = program.nonzero
        self.domain: Final = domain
        self.codomain: Final = codomain
        self.who: Final = who
        self.name: Final = name
        self._complex_linear = complex_linear

    @property
    def complex_linear(self) -> bool:
        """Tell whether the map commutes with complex numbers: it was made of maps that do, or its program says so."""
        return self._complex_linear or linear_operators.is_complex_linear(self.jaxpr)

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, MapType):
            return self is other
        same = form_of(self.jaxpr) is form_of(other.jaxpr) and self.nonzero == other.nonzero
        return same and self.domain == other.domain and self.codomain == other.codomain

    def __hash__(self) -> int:
        return hash((form_of(self.jaxpr), self.nonzero, self.domain.avals, self.codomain.avals))

    def __str__(self) -> str:
        return f"{self.domain} -> {self.codomain}"


class LinearMap:
    """A linear map between pytrees of arrays, such as the derivative of a function at a point. Prints its jaxpr.

    `linear_map(*tangents)`, or `linear_map @ tangents`, applies it. `.T` is the transpose and `.H` its conjugate, the
    adjoint; `f @ g` is x -> f(g(x)); `f + g`, `f - g`, `-f`, `2 * f` and `f / 2` are maps, too. `.matrix()` writes it
    out, `.cost` counts its operations, `.jaxpr` is `residuals ; tangents -> tangents`, and `.residuals` are the arrays
    that the jaxpr reads: the leaves of a pytree, which the map is.
    """

    __array_ufunc__ = None  # so that NumPy's arrays leave their operators to us

    def __init__(self, map_type: MapType, residuals: Sequence[Any]) -> None:
        self.map_type: Final = map_type
        self.residuals: Final = list(residuals)

    @classmethod
    def of(
        cls, program: LinearizedJaxpr, domain: TangentSpace, codomain: TangentSpace, who: str, name: str
    ) -> "LinearMap":
        """Make the map of a program; `who` made it, of the function `name`, in messages."""
        return cls(MapType(program, domain, codomain, who, name), [*map(own_array, program.residuals)])

    def __call__(self, *tangents: Any) -> Any:
        who, domain = self.map_type.who, self.map_type.domain
        leaves = domain.leaves(tangents, who)
        given = tangents_of(domain.avals, leaves, lambda i: f"{who}: tangent {i}")
        used = [instantiate(t) for aval, t in zip(domain.avals, given) if dtypes.is_inexact(aval.dtype)]
        return self.map_type.codomain.element(self.program.apply(used))

    @property
    def program(self) -> LinearizedJaxpr:
        """The linear jaxpr. Raises: TypeError if the residuals are not of the types that it was made with."""
        kind = self.map_type
        for i, (aval, x) in enumerate(zip(kind.jaxpr.in_avals, self.residuals)):
            _check_residual(kind.who, i, aval, x)
        return LinearizedJaxpr(kind.jaxpr, self.residuals, kind.nonzero, kind.codomain.inexact)

    @property
    def jaxpr(self) -> Jaxpr:
        """The linear jaxpr: residuals ; tangents -> tangents, without symbolic zeros."""
        return self.map_type.jaxpr

    @property
    def cost(self) -> "costs.ProgramCost":
        """The scalar operations that applying the map takes, counted as `tl.cost` counts them."""
        return costs.ProgramCost([ClosedJaxpr(self.jaxpr)])

    # ---- maps made of maps

    @property
    def T(self) -> "LinearMap":
        """The transpose: sum(y * f(x)) = sum(f.T(y) * x). A map of several arguments gives a tuple."""
        return self._made(linear_operators.transpose_map(self.program), self.map_type.codomain, self.map_type.domain)

    @property
    def H(self) -> "LinearMap":
        """The adjoint: sum(conj(y) * f(x)) = sum(conj(f.H(y)) * x)."""
        return self._made(linear_operators.adjoint(self.program), self.map_type.codomain, self.map_type.domain)

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, LinearMap):
            return self(other)
        f, g = self.map_type, other.map_type
        if not f.domain.holds(g.codomain):
            raise TypeError(f"@: the left map takes {f.domain}, but the right one gives {g.codomain}.")
        return self._made(linear_operators.product(self.program, other.program), g.domain, f.codomain, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.T(other)

    def __add__(self, other: Any) -> "LinearMap":
        if not isinstance(other, LinearMap):
            return NotImplemented
        f, g = self.map_type, other.map_type
        shapes = [[aval.shape for aval in kind.codomain.avals] for kind in (f, g)]
        if not f.domain.holds(g.domain) or f.codomain.tree != g.codomain.tree or shapes[0] != shapes[1]:
            raise TypeError(f"+: the maps are of different spaces, {f} and {g}.")
        return self._made(linear_operators.plus(self.program, other.program), f.domain, f.codomain, other)

    def __radd__(self, other: Any) -> "LinearMap":
        return self if type(other) is int and other == 0 else NotImplemented  # as sum() begins

    def __sub__(self, other: Any) -> "LinearMap":
        return self + -other if isinstance(other, LinearMap) else NotImplemented

    def __neg__(self) -> "LinearMap":
        return self * -1

    def __mul__(self, factor: Any) -> "LinearMap":
        return self._scaled("*", arithmetic.multiply, factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> "LinearMap":
        return self._scaled("/", arithmetic.divide, divisor)

    def _scaled(self, symbol: str, operation: Callable[[Any, Any], Any], number: Any) -> "LinearMap":
        if not is_arraylike(number):
            return NotImplemented
        if aval_of(number).shape:
            raise TypeError(f"{symbol}: a linear map is scaled by a number, not by an array {aval_of(number)}.")
        scaled = linear_operators.scale_map(operation, self.program, asarray(number))
        return self._made(scaled, self.map_type.domain, self.map_type.codomain)

    def _made(
        self, program: LinearizedJaxpr, domain: TangentSpace, codomain: TangentSpace, *others: "LinearMap"
    ) -> "LinearMap":
        """Make a map of this one and others; its results have the types that its program gives."""
        given = iter(program.out_avals)
        avals = [next(given) if dtypes.is_inexact(aval.dtype) else aval for aval in codomain.avals]
        kinds = [f.map_type for f in (self, *others)]
        # Of real numbers the transpose takes the real part, which is not linear.
        complex_linear = all(k.complex_linear and not k.domain.is_real and not k.codomain.is_real for k in kinds)
        kind = MapType(program, domain, codomain._replace(avals=tuple(avals)), complex_linear=complex_linear)
        return LinearMap(kind, program.residuals)

    # ---- as numbers

    def matrix(self) -> Any:
        """Write the map out as a matrix: f(x), raveled, is `f.matrix() @ ravel(x)`.

        Columns are the elements of the arguments, rows those of the results, in the order of leaves, integers left out.

        Raises: TypeError if complex arguments have parts, or conjugates, taken of them: no matrix does that.
        """
        domain, codomain = self.map_type.domain, self.map_type.codomain
        if domain.is_complex and not self.map_type.complex_linear:
            raise TypeError(
                f"matrix: the linear map {self.map_type} takes the conjugate, or the parts, of complex numbers, which "
                "a complex matrix cannot.\n  Give it real and imaginary parts as separate arguments."
            )
        dtype, _ = dtypes.result_type(*[aval.strong() for aval in codomain.inexact or domain.inexact])
        if not domain.size * codomain.size:
            return zeros((codomain.size, domain.size), dtype)
        program = self.program
        if domain.size <= codomain.size or domain.is_complex != codomain.is_complex:
            return vmap(_raveled(program.apply, dtype), out_axes=1)(basis(domain.inexact, 0, domain.size))
        return vmap(_raveled(program.pull_back, dtype))(basis(codomain.inexact, 0, codomain.size))

    def diagonal(self) -> Any:
        """Compute the diagonal of the matrix. Raises: TypeError as `matrix`."""
        return diagonal(self.matrix())

    def __repr__(self) -> str:
        return str(self.jaxpr)


pytree.register_pytree_node(LinearMap, lambda f: (f.residuals, f.map_type), LinearMap)


class PullBack:
    """The pull-back that `vjp` returns: cotangent of the result -> a tuple of cotangents, one per argument.

    It is a pytree; its leaves are the residuals of the derivative `linear_map`, whose transpose it is. Those that are
    arguments of the function are in `args_res`, too, where they may be replaced.
    """

    def __init__(self, linear_map: LinearMap, form: "PullBackForm") -> None:
        self._linear_map, self._form = linear_map, form
        self._args_res: list[Any] | None = None  # if it was asked for, the map has None in the places of its arrays
        self.__name__: str = form.name
        self.__qualname__ = form.name

    def __call__(self, cotangent: Any) -> Any:
        kind, form = self.linear_map.map_type, self._form
        cts = _cotangents(cotangent, kind.codomain, kind.who, kind.name)
        given = [ct for aval, ct in zip(kind.codomain.avals, cts) if dtypes.is_inexact(aval.dtype)]
        conjugated = linear_operators.conjugate if form.adjoint else _same
        pulled = map(conjugated, self.linear_map.program.pull_back([*map(conjugated, given)]))
        return kind.domain.element([*map(weak_as, pulled, kind.domain.inexact)], form.arguments)

    @property
    def linear_map(self) -> LinearMap:
        """The derivative. Raises: ValueError if an array that it reads was taken out of `args_res`."""
        if self._args_res is None:
            return self._linear_map
        names = ("the arguments", "args_res")
        leaves = pytree.flatten_up_to(self._form.arguments, tuple(self._args_res), "vjp", names)
        residuals = [x if i is None else leaves[i] for x, i in self._numbered()]
        taken = next((x for x in residuals if not is_arraylike(x)), self)
        if taken is not self:
            raise ValueError(f"vjp: args_res has {taken!r:.80} in the place of an argument that is read: put it back.")
        return LinearMap(self._linear_map.map_type, residuals)

    @property
    def args_res(self) -> list[Any]:
        """The residuals that are arguments: a list of the arguments, with `NotNeeded()` for arrays that are not read.

        An entry may be taken out, so that its array is freed, and put back before the next call.
        """
        if self._args_res is None:
            kind, found = self._linear_map.map_type, {i: x for x, i in self._numbered() if i is not None}
            leaves = [found.get(i, NotNeeded()) for i in range(len(kind.domain.avals))]
            self._args_res = list(pytree.unflatten(self._form.arguments, leaves))
            self._linear_map = LinearMap(kind, [x if i is None else None for x, i in self._numbered()])
        return self._args_res

    @property
    def opaque_residuals(self) -> list[Any]:
        """The residuals that are no arguments."""
        return [x for x, i in self._numbered() if i is None]

    def _numbered(self) -> list[tuple[Any, int | None]]:
        """List the residuals, each with the number of the argument's leaf that it is."""
        residuals = self._linear_map.residuals
        return list(zip(residuals, self._form.of_arguments or (None,) * len(residuals), strict=True))

    def with_refs(self, *maybe_ct_refs: Any) -> Callable[[Any], Any]:
        """Make the pull-back whose gradients go where entries for the arguments say.

        Args:
          maybe_ct_refs: for each argument a reference, which its gradient is added to, `tl.ad.GradValue()` if it is to
            be returned, or `tl.ad.DontWant()`; or a pytree of these that is a prefix of the argument.
        Returns: a function like this one, which returns `tl.ad.GradRef()` or `DidntWant()` for what is not returned.
        Raises: ValueError if the entries do not fit the arguments; TypeError for an entry that is none.
        """
        form, domain = self._form, self.linear_map.map_type.domain
        arguments = pytree.unflatten(form.arguments, list(range(len(domain.avals))))
        entries = entries_of(maybe_ct_refs, arguments)

        def pull(cotangent: Any) -> Any:
            leaves, tree = pytree.flatten(self(cotangent))
            return pytree.unflatten(tree, [*map(place_cotangent, entries, leaves)])

        return pull

    def __repr__(self) -> str:
        return f"<{self.__name__}: {self.linear_map.map_type.codomain} -> {self.linear_map.map_type.domain}>"


class PullBackForm(NamedTuple):
    """The static part of a pull-back: the structure of its result, its name, and whether it conjugates.

    of_arguments: for each residual the number of the argument's leaf that it is, or None; empty if none is one.
    """

    arguments: Any
    name: str
    adjoint: bool = False
    of_arguments: tuple[int | None, ...] = ()


pytree.register_pytree_node(
    PullBack, lambda f: ((f.linear_map,), f._form), lambda form, children: PullBack(children[0], form)
)


def positions(residuals: Sequence[Any], arguments: Any) -> tuple[int | None, ...]:
    """Find for each residual the number of the leaf of the arguments that it is, or None."""
    numbers = {id(x): i for i, x in enumerate(pytree.leaves(arguments))}
    return tuple([numbers.get(id(x)) for x in residuals])


def _same(x: Any) -> Any:
    return x


def weak_as(ct: Any, aval: ShapedArray) -> Any:
    """Make a cotangent weak if its primal is."""
    if type(ct) is Zero:
        return Zero(aval)
    ct = own_array(ct)
    return ct if aval_of(ct).weak_type == aval.weak_type else convert_element_type(ct, aval.dtype, aval.weak_type)


def _cotangents(cotangent: Any, space: TangentSpace, who: str, name: str) -> list[Any]:
    flat, tree = pytree.flatten(cotangent)
    if tree != space.tree:
        told = pytree.compare(space.tree, tree, ("the result", "the cotangent"))
        raise TypeError(f"{who}: the cotangent must have the structure of the result of {name}.{told}")
    return [
        Zero(aval)
        if aval.dtype == dtypes.float0
        else direction(ct, aval, f"{who}: cotangent {i}", f"the result of {name}")
        for i, (ct, aval) in enumerate(zip(flat, space.avals, strict=True))
    ]


def _check_residual(who: str, i: int, aval: ShapedArray, x: Any) -> None:
    have = aval_of(x) if is_arraylike(x) else None
    if have is None or have.shape != aval.shape or have.dtype != aval.dtype:
        shown = have if have is not None else f"{x!r:.80} of type {type(x).__name__}"
        raise TypeError(
            f"{who}: residual {i} of the linear map is {shown}, but its program takes {aval}.\n"
            "  What vmap returned holds the maps of all examples: apply it under vmap, vmap(lambda f, t: f(t))(f, ts)."
        )


# ---- matrices ------------------------------------------------------------------------------------------------


def basis(avals: Sequence[ShapedArray], start: Any, size: int) -> list[Any]:
    """Make `size` elements of the basis of all leaves from `start`, maybe traced: [size, shape..], weak if it is."""
    leaves = []
    for t in avals:
        leaves.append(weak_as(reshape(eye(size, t.size, start, t.dtype), (size, *t.shape)), t))
        start = start - t.size
    return leaves


def _raveled(apply: Callable[[Sequence[Any]], list[Any]], dtype: Any) -> Callable[[list[Any]], Any]:
    """Make the function of one element, given as a list of leaves, whose result is a vector."""

    def vector(leaves: list[Any]) -> Any:
        return concatenate([ravel(x).astype(dtype) for x in map(instantiate, apply(leaves))])

    return vector
