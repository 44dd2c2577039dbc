"""A NumPy array that its owner changes after a program was made of it changes nothing in the program."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

ONES = tnp.ones(3)
Made = Callable[[], Any]


def ruled(a: Any) -> Any:
    f = tl.custom_vjp(lambda x: x * a)
    f.defvjp(lambda x: (x * a, a), lambda residual, ct: (ct * residual,))
    return f


def compiled(f: Any) -> Made:
    program = tl.jit(f).lower(ONES).compile()
    return lambda: program(ONES)


def called(f: Any, *args: Any) -> Made:
    f(*args)
    return lambda: f(*args)


def pulled(f: Any, *args: Any) -> Made:
    y, pull_back = tl.vjp(f, *args)
    return lambda: pull_back(y)


def evaluated(f: Any) -> Made:
    program = tl.make_jaxpr(f)(ONES)
    return lambda: tl.core.eval_jaxpr(program.jaxpr, program.consts, ONES)


MAKERS: dict[str, Callable[[Any, Any], Made]] = {
    "jit": lambda a, s: called(tl.jit(lambda x: x * a * s), ONES),
    "compiled": lambda a, s: compiled(lambda x: x * a * s),
    "make_jaxpr": lambda a, s: evaluated(lambda x: x * a * s),
    "memory map": lambda a, s: evaluated(lambda x: x * a.view(np.memmap) * s),
    "linearize": lambda a, s: called(tl.linearize(lambda x: x * a * s * x, ONES)[1], ONES),
    "linearize at": lambda a, s: called(tl.linearize(lambda x, y: x * x * y, a, s)[1], ONES, 1.0),
    "vjp": lambda a, s: pulled(lambda x: x * a * s * x, ONES),
    "vjp at": lambda a, s: pulled(lambda x: x * x * s, a),
    "vjp of jit": lambda a, s: pulled(tl.jit(lambda x, y: x * x * y), a, s),
    "vjp of a choice": lambda a, s: pulled(lambda x: tnp.where(a > s - 1, x, 0), ONES),
    "vjp of a product": lambda a, s: pulled(lambda x: tnp.dot(x, a) * s, ONES),
    "vjp of vmap": lambda a, s: pulled(tl.vmap(lambda x, y: x * y * s), ONES, a),
    "vjp of scan": lambda a, s: pulled(lambda x: lax.scan(lambda c, e: (c * e * s, None), x, a)[0], tnp.ones(())),
    "vjp of checkpoint": lambda a, s: pulled(tl.checkpoint(lambda x: tnp.sin(x * x * s)), a),
    "vjp of a rule": lambda a, s: pulled(ruled(tnp.asarray(a) * s), ONES),
    "residual": lambda a, s: called(tl.linearize(ruled(a), ONES)[1], ONES),
    "linear_transpose": lambda a, s: called(tl.linear_transpose(lambda x: x * a * s, ONES), ONES),
    "gradient_program": lambda a, s: called(tl.gradient_program(lambda x: tnp.sum(x * x * a * s), ONES), ONES),
    "closure_convert": lambda a, s: called(tl.closure_convert(lambda x: x * a * s, ONES)[0], ONES),
    "reference": lambda a, s: called(lambda r: r[...], tl.new_ref(a)),
    "array": lambda a, s: called(lambda *xs: xs, tnp.asarray(a), tnp.asarray(s), tl.device_put(a), tl.device_put(s)),
    "results": lambda a, s: called(
        lambda *xs: xs, tl.jit(lambda *xs: xs)(a, s), tl.vjp(lambda x: x, a)[0], ruled(1.0)(a)
    ),
}


@pytest.mark.parametrize("early", [False, True], ids=["after a call", "before the first call"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_program_does_not_change_with_an_array_that_it_was_made_of(name: str, early: bool) -> None:
    def fresh() -> tuple[Any, Any]:
        return np.full(3, 2, np.float32), np.full((), 3, np.float32)

    wanted = tl.tree.leaves(MAKERS[name](*fresh())())
    a, s = fresh()
    run = MAKERS[name](a, s)
    if not early:
        run()
    a[...], s[...] = 7, 7
    for found, want in zip(tl.tree.leaves(run()), wanted, strict=True):
        np.testing.assert_array_equal(found, want)


def test_what_is_loaded_does_not_change_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "tree"
    tl.save(path, {"a": np.ones(3, np.float32)})
    loaded = tl.load(path)
    tl.save(path, {"a": np.zeros(3, np.float32)})
    np.testing.assert_array_equal(loaded["a"], np.ones(3))


# ---- arrays that programs hold


def test_nobody_can_write_to_constants_and_literals_of_programs() -> None:
    program = tl.make_jaxpr(lambda x: x * np.ones(3, np.float32) + np.ones((), np.float32))(ONES)
    held = [*program.consts, *[v.value for eqn in program.eqns for v in eqn.invars if hasattr(v, "value")]]
    assert [x.flags.writeable for x in held] == [False, False]


def test_numbers_on_a_device_do_not_share_memory_that_may_be_donated() -> None:
    taken, kept = tl.device_put(1.5), tl.device_put(1.5)
    tl.jit(lambda x: x + 1, donate_argnums=0)(taken)
    assert float(kept) == 1.5
