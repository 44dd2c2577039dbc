"""Functions and structures nested deeply: they work, or an error says what is nested, and how deep."""

import sys
from collections.abc import Iterator

import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

FACTOR = 1.001


def nested(depth):
    """`jit` of a function that calls a jitted one, and so on."""
    f = tnp.sin
    for _ in range(depth):
        f = tl.jit(lambda x, inner=f: inner(x) * FACTOR)
    return f


@pytest.fixture
def more_calls() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(before)


TRANSFORMATIONS = {
    "jit": lambda f: f(1.0),
    "grad": lambda f: tl.grad(f)(1.0),
    "vmap": lambda f: tl.vmap(f)(tnp.ones(2)),
    "linearize": lambda f: tl.linearize(f, 1.0)[1](1.0),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_too_many_nested_functions(name):
    with pytest.raises(RecursionError) as raised:
        TRANSFORMATIONS[name](nested(300))
    message = str(raised.value)
    assert message.startswith("functions are traced within one another, ")
    assert f"Python's limit of {sys.getrecursionlimit()} nested calls is reached" in message
    assert "sys.setrecursionlimit" in message and "tests/api/test_deep_nesting.py:" in message


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_with_a_higher_limit_they_work(name, more_calls):
    """XLA would end the process of 200 functions that call one another, if they were written as functions."""
    expected = TRANSFORMATIONS[name](lambda x: tnp.sin(x) * FACTOR**300)
    assert tnp.allclose(TRANSFORMATIONS[name](nested(300)), expected, rtol=1e-4)


def test_deep_functions_that_are_called_twice_are_written_once(more_calls):
    f = tnp.sin
    for _ in range(60):
        f = tl.jit(lambda x, inner=f: inner(x) + inner(-x))
    text = tl.jit(f).lower(1.0).as_text()
    assert text.count("func.func") < 70


def test_the_users_own_recursion_is_left_alone():
    def endless(n):
        return endless(n + 1)

    with pytest.raises(RecursionError, match=r"^maximum recursion depth exceeded"):
        tl.jit(lambda x: endless(0))(1.0)


def test_too_many_nested_branches(more_calls):
    f = tnp.sin
    for _ in range(160):
        f = lambda x, inner=f: lax.cond(x > 0, inner, lambda x: x, x)  # noqa: E731
    with pytest.raises(NotImplementedError, match="are nested 160 deep, and XLA's compiler ends the process"):
        tl.jit(f)(1.0)


@pytest.mark.parametrize("depth", [300, 900, 2000])
def test_deep_pytrees(depth):
    tree = tnp.ones(2)
    for i in range(depth):
        tree = [tree] if i % 2 else {"a": tree}

    def total(tree):
        return tnp.sum(tl.tree.leaves(tree)[0] ** 2)

    jitted = tl.jit(lambda tree: (tree, total(tree)))
    for _ in range(3):
        again, value = jitted(tree)
        assert value == 2 and tl.tree.structure(again) == tl.tree.structure(tree)
    assert tl.tree.leaves(tl.jit(tl.grad(total))(tree))[0].tolist() == [2, 2]
    assert tl.tree.leaves(tl.vmap(lambda tree: tl.tree.map(lambda x: 2 * x, tree))(tree))[0].tolist() == [2, 2]
    carried, _ = lax.scan(lambda c, _: (tl.tree.map(lambda x: x + 1, c), None), tree, None, length=2)
    assert tl.tree.leaves(carried)[0].tolist() == [3, 3]


def test_a_pytree_that_contains_itself():
    tree = [1.0]
    tree.append((tree,))
    for use in (tl.jit(lambda t: 1.0), tl.grad(lambda t: 1.0), tl.tree.leaves, tl.tree.structure):
        with pytest.raises(RecursionError, match=r"the pytree contains itself: a list is \d levels within"):
            use(tree)
