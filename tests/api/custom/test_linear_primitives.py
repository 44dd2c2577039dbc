"""In which operands a primitive of a library is linear: as it says, and in none if it does not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.extend import ad, analysis, batching, mlir
from tapeless.interpreters.simplify import simplify_program

ONE, ZERO, X = tnp.ones(2), tnp.zeros(2), tnp.array([1.0, 2.0])


def fused(*sets: Any, says: bool = True) -> Callable[..., Any]:
    """Make x * y + z, a primitive with all rules, that is linear in these operands."""
    p = tl.core.Primitive("fused")
    p.def_abstract_eval(lambda x, y, z: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False))

    def transposed(ct: Any, x: Any, y: Any, z: Any) -> Any:
        return (
            ct * y if ad.is_undefined_primal(x) else None,
            ct * x if ad.is_undefined_primal(y) else None,
            ct if ad.is_undefined_primal(z) else None,
        )

    def pushed(primals: Any, tangents: Any) -> Any:
        (x, y, z), (dx, dy, dz) = primals, map(ad.instantiate_zeros, tangents)
        return p.bind(x, y, z), p.bind(dx, y, p.bind(x, dy, dz))

    ad.primitive_jvps[p], ad.primitive_transposes[p] = pushed, transposed

    def batched(args: Any, dims: Any) -> Any:
        size = next(x.shape[d] for x, d in zip(args, dims) if d is not None)
        return p.bind(*[batching.bdim_at_front(x, d, size) for x, d in zip(args, dims)]), 0

    batching.primitive_batchers[p] = batched
    if says:
        ad.def_linear_in(p, *sets)
    return p.bind


def reason(f: Callable[..., Any], *args: Any) -> str:
    """Return why a function is not linear; nothing if it is."""
    try:
        tl.check_linear(f, *args)
    except tl.errors.LinearityError as error:
        return error.reason
    return ""


def in_scan(f: Any) -> Any:
    return lambda x: tl.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


def in_vmap(f: Any) -> Any:
    return lambda x: tl.vmap(f)(tnp.stack([x, x, x]))


def in_rule(f: Any) -> Any:
    g = tl.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    return g


PLACES = [lambda f: f, tl.jit, in_vmap, in_scan, in_rule]
FMA = {
    "x, constant, 0": (lambda p: lambda x: p(x, 3 * ONE, ZERO), ""),
    "x, constant, x": (lambda p: lambda x: p(x, 3 * ONE, x), ""),
    "constant, x, 2 x": (lambda p: lambda x: p(ONE, x, 2 * x), ""),
    "0, constant, x": (lambda p: lambda x: p(ZERO, ONE, x), ""),
    "x, x, x": (lambda p: lambda x: p(x, x, x), "bilinear"),
    "x, x, 0": (lambda p: lambda x: p(x, x, ZERO), "bilinear"),
    "x, constant, constant": (lambda p: lambda x: p(x, ONE, ONE), "affine"),
    "constant, constant, x": (lambda p: lambda x: p(ONE, ONE, x), "affine"),
}


@pytest.mark.parametrize("place", range(len(PLACES)))
def test_jointly_in_two_sets(place: int):
    for name, (make, wanted) in FMA.items():
        f = PLACES[place](make(fused((0, 2), (1, 2))))
        assert reason(f, X) == wanted, name
        if not wanted:
            pulled = tl.linear_transpose(f, X)(f(X))
            np.testing.assert_allclose(tnp.vdot(pulled[0], X), tnp.vdot(f(X), f(X)), rtol=1e-6)


@pytest.mark.parametrize(
    "sets, linear, not_linear",
    [
        ((0, 1, 2), "x11 1x1 11x", "xx1 1xx xxx"),  # multilinear
        ((1,), "1x1", "x11 11x xx1"),
        (((0, 1),), "xx1 x01 0x1", "11x xxx x11"),
        ((), "xxx x0x x00", "x11 xx1"),  # in all together
        (None, "", "x00 0x0 xxx 00x"),  # it does not say: nonlinear
    ],
)
def test_sets(sets: Any, linear: str, not_linear: str):
    bind = fused(*(sets or ()), says=sets is not None)
    for text, is_linear in [(t, yes) for some, yes in ((linear, True), (not_linear, False)) for t in some.split()]:
        f = lambda x, text=text: bind(*[{"x": x, "0": ZERO, "1": ONE}[c] for c in text])  # noqa: E731
        assert (not reason(f, X)) is is_linear, text


def test_derivatives_need_no_word():
    """Rules of derivatives apply it to tangents, and are trusted; the linear program of a user is checked."""
    bind = fused(says=False)
    f = lambda x: (bind(x, x, x) ** 2).sum()  # noqa: E731
    expected = 2 * (X * X + X) * (2 * X + 1)
    for g in (tl.grad(f), tl.jit(tl.grad(f)), tl.jit(tl.jacfwd(f))):
        np.testing.assert_allclose(g(X), expected, rtol=1e-6)
    assert reason(lambda x: bind(x, ONE, ZERO), X) == "nonlinear primitive"


def test_rules_that_say_it():
    """`deflinear`, `defbilinear`, and the transpose of a primitive of one operand."""
    product, double, single = [tl.core.Primitive(name) for name in ("product", "double", "single")]
    for p in (product, double, single):
        p.def_abstract_eval(lambda x, *_: x)
    ad.defbilinear(product, lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)
    ad.deflinear(double, lambda ct: (2 * ct,))
    ad.primitive_transposes[single] = lambda ct, x: (ct,)
    assert reason(lambda x: product.bind(x, ONE), X) == "" == reason(lambda x: product.bind(ONE, x), X)
    assert reason(lambda x: product.bind(x, x), X) == "bilinear"
    assert reason(double.bind, X) == "" == reason(single.bind, X)


@pytest.mark.parametrize("given, error", [("0", TypeError), (True, TypeError), (-1, ValueError), ((0, 1.5), TypeError)])
def test_positions_are_checked(given: Any, error: type[Exception]):
    with pytest.raises(error, match="def_linear_in: fused: positions of operands"):
        fused(given)
    with pytest.raises(TypeError, match="sin is a primitive of Tapeless"):
        ad.def_linear_in(tl.lax.sin_p, 0)


def test_programs_with_it_are_read():
    """`parse_jaxpr` finds the primitive among `objects`."""
    p = tl.core.Primitive("mine")
    p.def_abstract_eval(lambda x, y: x)
    ad.defbilinear(p, lambda ct, x, y: p.bind(ct, y), lambda ct, x, y: p.bind(x, ct))
    for program in (tl.make_jaxpr(p.bind)(X, X), tl.check_linear(lambda x: p.bind(x, ONE), X)):
        for objects in ({"mine": p}, {"mine": program.jaxpr.eqns[-1].primitive}):
            found = tl.parse_jaxpr(str(program), program.consts, objects=objects)
            assert str(found) == str(program)
            assert found.jaxpr.eqns[-1].primitive == p


def test_elements_and_cost():
    """With an index row only the elements that are read are computed; `tl.cost` counts as it is told."""
    p = tl.core.Primitive("cubed")
    p.def_abstract_eval(lambda x, *, by: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, by: by * x**3, multiple_results=False))
    f = lambda x: p.bind(x, by=2)[:3]  # noqa: E731
    x = tnp.arange(100.0)
    sizes = lambda f: [  # noqa: E731
        e.outvars[0].aval.size for e in simplify_program(tl.make_jaxpr(f)(x).jaxpr).eqns if e.primitive == p
    ]
    assert sizes(f) == [100]
    assert tl.cost(f, x).work == tl.cost(f, x).sparse.work == 100
    analysis.def_elementwise(p)
    analysis.def_cost(p, lambda x, *, by: by * x.size)
    g = lambda x: f(x)  # noqa: E731
    assert sizes(g) == [3]
    np.testing.assert_array_equal(tl.jit(g)(x), [0, 2, 16])
    assert tl.cost(g, x).work == tl.cost(g, x).sparse.work == 200
    with pytest.raises(TypeError, match="sin is a primitive of Tapeless"):
        analysis.def_elementwise(tl.lax.sin_p)
