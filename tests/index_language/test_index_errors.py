"""What is wrong in a body, and where."""

import inspect
import re

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless.errors import UnexpectedTracerError
from tapeless.tracer.advice.keyword_advice import advise
from tests.messages import text_of

X = tnp.arange(5.0)
A = tnp.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "body, error, message",
    [
        (lambda i: A[i, -1], IndexError,
         "index -1 of float32[2,3]: negative numbers are outside in a body, so that A[i - 1] is 0 at i = 0. "
         "The element that is 1 before the end of an axis of length n is A[n - 1]."),
        (lambda i: X[-2], IndexError,
         "index -2 of float32[5]: negative numbers are outside in a body, so that A[i - 1] is 0 at i = 0. "
         "The element that is 2 before the end of an axis of length n is A[n - 2]."),
        (lambda i: A[i, 3], IndexError, "index 3 is outside of axis 1 of float32[2,3]."),
        (lambda i: A[i, 0, 0], IndexError, "3 indices for an array of 2 axes, float32[2,3]."),
        (lambda i: A[..., i, ...], IndexError, "2 ellipses in an index of float32[2,3]: there can be one."),
        (lambda i: X[i : i + 2], TypeError,
         "the size of a slice of float32[5] along axis 0 depends on an index: shapes are known when tracing. "
         "Read elements: build(m, lambda k: A[i + k])."),
        (lambda i: 1.0 if i else 0.0, TypeError,
         "Index(from 0 to 1) is not known where `if` or `while` asks for it: use index.where or index.cond."),
        (lambda i: [1, 2, 3][i], TypeError,
         "Index(from 0 to 1) has no value yet, as it stands for all of its range. "
         "NumPy, and lists, need its value. "
         "Write index.array(a)[i] in the place of a[i], or a = index.array(a) before."),
        (lambda i: list(range(i)), TypeError,
         "Index(from 0 to 1) has no value yet, as it stands for all of its range. "
         "NumPy, and lists, need its value. "
         "Write index.array(a)[i] in the place of a[i], or a = index.array(a) before."),
        (lambda i: A[i, X], TypeError,
         "axis 1 of float32[2,3] is read by an array of type float32[5] beside an index: "
         "items are indices, integers, slices, None and `...`."),
        (lambda i: X.at[i].set(1.0), TypeError,
         "an index of a body cannot stand here: use index.scatter to write by it."),
        (lambda i: [X[k] for k in i], TypeError,
         "Index(from 0 to 1) is an integer. To go over a range, write sum(n, lambda k: ...) or fold."),
        (lambda i: ix.relation(([0], [1]), (2, 2))[i], IndexError,
         "1 indices for 2 axes, of Relation({(0, 1)}, shape=(2, 2)): entries are read one by one, as [i, j]."),
        (lambda i: ix.max((0, 3), lambda j, k: A[j, k]), ValueError,
         "index.max: there is no element to choose over indices of shape (0, 3)."),
        (lambda i: np.sin(i), TypeError,
         "operand 'Index' does not support ufuncs (__array_ufunc__=None)\n"
         "  Write tnp.sin(i), of tapeless.numpy, in the place of np.sin(i): the value of an index is not known."),
        (lambda i: "text", TypeError, "index.build: argument 0 must be an array or a number, not str: 'text'."),
    ],
)  # fmt: skip
def test_bodies(body, error, message):
    with pytest.raises(error) as caught:
        ix.build(2, body)
    assert text_of(caught.value) == message


@pytest.mark.parametrize(
    "body",
    [lambda i: A[i, 0, 0], lambda i: X[-1], lambda i: X[X > 2][0], lambda i: X[i : i + 2], lambda i: 1.0 if i else 0.0],
)
@pytest.mark.parametrize("around", [lambda f: ix.build(2, f), lambda f: ix.fold(lambda c, k: c + f(k), 0.0, 2)])
def test_errors_in_bodies_name_the_line(body, around):
    with pytest.raises((IndexError, TypeError)) as caught:
        around(body)
    line = inspect.getsourcelines(body)[1]
    assert f"test_index_errors.py:{line} (<lambda>)" in str(caught.value)


def test_arrays_of_numpy_are_converted_first():
    with pytest.raises((TypeError, IndexError)) as caught:
        ix.build(2, lambda i: np.ones(3)[i])
    assert re.search(r"index\.array\(a\)|valid indices", str(caught.value))


def used_later(i):
    return X[i] if isinstance(i, ix.Index) else X * i


def computed_later(i):
    return 2 - 3 * i


def copied_later(i):
    return +i if isinstance(i, ix.Index) else -i


def divided_later(i):
    return (4 + i) // 2


def compared_later(i):
    return i < 2


def chosen_later(i):
    return ix.where(True, i, 0)


def read_in_another_body(i):
    return ix.build(2, lambda j: i + j)


@pytest.mark.parametrize(
    "used",
    [used_later, computed_later, copied_later, divided_later, compared_later, chosen_later, read_in_another_body],
)
@pytest.mark.parametrize(
    "keep, dtype", [(lambda i: i, "int32"), (lambda i: (i + 1) // 2, "int32"), (lambda i: X[i] * 2, "float32")]
)
def test_what_escapes_a_body(keep, dtype, used):
    """An index, and an element: the error says of which body, and where it was used."""
    kept = []
    ix.build(2, lambda i: kept.append(keep(i)) or X[i])
    line = inspect.currentframe().f_lineno
    with pytest.raises(UnexpectedTracerError) as caught:
        used(kept[0])
    here = "test_index_errors.py:"
    text = re.sub(r"\S*?test_index_errors\.py:", here, str(caught.value))
    first, *made, place, last = text.split("\n")
    assert first == f"a value escaped its body: {dtype}[] of <lambda> at {here}{line - 1}, traced for build."
    where = f"{here}{keep.__code__.co_firstlineno} (<lambda>), "
    assert [m.startswith(f"  The value was computed at {where}") for m in made] == [True] * (dtype == "float32")
    assert place.startswith(f"  It was used at {here}{used.__code__.co_firstlineno + 1} ({used.__name__}")
    assert last == ("  It stands for the values at all indices: return it from the body, and use the array of them.")


def asked(i):
    return X[0] if i == 0 else X[1]


def test_choices_in_python():
    """The line that asks, and the body."""
    with pytest.raises(TypeError) as caught:
        ix.build(2, asked)
    line = f"test_index_errors.py:{asked.__code__.co_firstlineno + 1} (asked), return X[0] if i == 0 else X[1].\n"
    assert re.sub(r"\S*?test_index_errors\.py:", "test_index_errors.py:", str(caught.value)) == (
        f"the truth value of a traced array is not known: bool[], asked for at {line}"
        f"  Traced: {place(asked)}, traced for build.\n"
        f"  It was computed at {line}"
        "  In a body use index.where or index.cond for a choice; both sides are computed. Write (0 < i) & (i < n) for "
        "0 < i < n or (0 < i) and (i < n), | for or, ~ for not."
    )


def test_shapes():
    with pytest.raises(TypeError):
        ix.build(2.5, lambda i: X[i])
    with pytest.raises(TypeError, match="build"):
        ix.build(2, 3)
    with pytest.raises(TypeError, match=r"index\.fold"):
        ix.fold(lambda c, k: c, 0.0, "3")
    with pytest.raises(ValueError, match=r"index\.fold: shape"):
        ix.fold(lambda c, k: c, 0.0, -1)
    with pytest.raises(ValueError, match=r"^index\.where: "):
        ix.build(2, lambda i: ix.where(i > 0, (X[i],), X[i]))
    with pytest.raises(ValueError, match="scatter: 1 indices for a result of shape"):
        ix.scatter((2, 2), X, lambda i: i)


def test_shapes_that_are_no_tuple():
    """What Python prints has the advice."""
    for name in ("build", "sum"):
        with pytest.raises(TypeError) as caught:
            getattr(ix, name)(2, 3, lambda i, j: A[i, j])
        advise(caught.value)
        assert str(caught.value).endswith(
            f"\n  The shape for several indices is a tuple: {name}((2, 3), lambda i, j: ...)."
        )


def one(i):
    return X[i]


def place(f):
    return f"{f.__name__} at {__file__.rpartition('/')[2]}:{f.__code__.co_firstlineno}"


@pytest.mark.parametrize(
    "call, function, message",
    [
        (lambda f: ix.build((2, 3), f), one, "index.build: {} takes (i), and is called with 2 indices."),
        (lambda f: ix.sum((), f), one, "index.sum: {} takes (i), and is called with 0 indices."),
        (lambda f: ix.fold(f, 0.0, 3), one, "index.fold: {} takes (i), and is called with a carry and an index."),
        (lambda f: ix.scan(f, 0.0, 3), one, "index.scan: {} takes (i), and is called with a carry and an index."),
        (lambda f: ix.gather((2, 2), A, f), one, "index.gather: {} takes (i), and is called with 2 indices."),
        (lambda f: ix.scatter(2, A, f), one, "index.scatter: {} takes (i), and is called with 2 indices."),
        (lambda f: ix.scan(f, 0.0, 3), lambda c, k: c,
         "index.scan: {} must return a pair (carry, y), but returned one array, float32[]."),
        (lambda f: ix.scan(f, 0.0, 3), lambda c, k: (c,),
         "index.scan: {} must return a pair (carry, y), but returned a tuple of 1."),
        (lambda f: ix.build(2, f), lambda i: None,
         "index.build: {} returns None, not an element: is `return` missing?"),
        (lambda f: ix.sum(2, f), lambda i: None, "index.sum: {} returns None, not an element: is `return` missing?"),
        (lambda f: ix.gather(2, X, f), lambda i: None, "index.gather: {} returns None, and not an index, an integer."),
        (lambda f: ix.scatter(2, X, f), lambda i: i / 2,
         "index.scatter: {} returns float32[], and not an index, an integer."),
        (lambda f: ix.scatter(2, X, f), lambda i: None,
         "index.scatter: {} returns None, and not an index, an integer."),
        (lambda f: ix.cond(f, 1.0, 2.0), lambda: True, "index.cond: the condition is {}: write cond(i > 0, f, g)."),
        (lambda f: ix.scan(f, 0.0, 3), lambda c, k: None,
         "index.scan: {} must return a pair (carry, y), but returned None."),
    ],
)  # fmt: skip
def test_functions_of_other_arguments(call, function, message):
    """Each names the user's function, and its line."""
    with pytest.raises(TypeError) as caught:
        call(function)
    assert re.sub(r" at \S*?([^/\s]+\.py)", r" at \1", text_of(caught.value)) == message.format(place(function))


R, S = ix.relation(([0, 1], [1, 0]), (2, 2)), ix.sparse(([0, 1, 0], [1, 0, 1]), [1.0, 2.0, 4.0], (2, 2))


def all_related(i):
    return {"a": R}


def all_entries(i):
    return S, X[i]


@pytest.mark.parametrize("around", [lambda f: f(), lambda f: tl.jit(f)()])
@pytest.mark.parametrize(
    "call, who, whole",
    [
        (lambda: ix.build(3, all_related), "build", "relation"),
        (lambda: ix.build(2, lambda i: ix.sum(2, all_related)["a"][i, i]), "sum", "relation"),
        (lambda: ix.scan(lambda c, k: (c, ix.build(2, all_related)), 0.0, 2), "build", "relation"),
        (lambda: ix.max(2, all_entries), "max", "sparse array"),
        (lambda: ix.fold(lambda c, k: c + ix.build(2, all_entries)[1], tnp.ones(2), 2), "build", "sparse array"),
    ],
)  # fmt: skip
def test_whole_relations(call, who, whole, around):
    """Their leaves would be batched: no relation any more."""
    body, name = (all_related, "R") if whole == "relation" else (all_entries, "S")
    with pytest.raises(TypeError) as caught:
        around(call)
    assert re.sub(r" at \S*?([^/\s]+\.py)", r" at \1", text_of(caught.value)) == (
        f"index.{who}: {place(body)} returns a whole {whole} of shape (2, 2), and a body returns elements: "
        f"write {name}[i, j] for one of them, {name}.todense() for all."
    )


def test_relations_of_scans():
    for y in (R, S):
        with pytest.raises(
            TypeError, match=r"^index\.scan: <lambda> at .* returns a whole (rel|sp).* of shape \(2, 2\)"
        ):
            ix.scan(lambda c, k, y=y: (c, y), 0.0, 2)
        carried = ix.fold(lambda c, k: c, y, 2)
        np.testing.assert_array_equal(carried.todense(), y.todense())
    total = ix.sum(3, lambda i: tl.tree.map(lambda v: i * v, S))  # sums of sparse arrays are sparse
    np.testing.assert_array_equal(total.todense(), [[0, 15], [6, 0]])


def test_batches_of_relations_are_read_one_by_one():
    for one, leaf in ((R, "int32[3,2]"), (S, "float32[3,3]")):
        batch = tl.vmap(lambda i, one=one: one)(np.arange(3))
        for read in (lambda b: b[0, 1], lambda b: b.todense()):
            with pytest.raises(ValueError) as caught:
                read(batch)
            assert text_of(caught.value) == (
                f"{type(one).__name__}: {leaf} in the place of one axis, of the entries: it is a batch of (2, 2), as "
                "vmap and scan make. Read it in a function that vmap maps over it, or read the one at k: "
                "tl.tree.map(lambda x: x[k], batch)."
            )
        np.testing.assert_array_equal(tl.vmap(lambda b: b[0, 1])(batch), [one[0, 1]] * 3)
        np.testing.assert_array_equal(tl.tree.map(lambda x: x[2], batch).todense(), one.todense())


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: ix.relation((), ()), "Relation: an array of the shape () has no axes that coordinates are along."),
        (lambda: ix.sparse((), [], ()),
         "SparseArray: an array of the shape () has no axes that coordinates are along."),
        (lambda: ix.relation(([0], [1]), (2,)),
         "Relation: 2 arrays of coordinates for 1 axes, (2,). Coordinates of one entry after another are those of "
         "zip(*coords)."),
        (lambda: ix.relation(([0], [1, 2]), (2, 3)),
         "Relation: coordinates along axis 1 are int32[2], those along axis 0 int32[1]."),
        (lambda: ix.relation(([0.5],), (2,)),
         "Relation: coordinates along axis 0 must be integers of one axis, not float32[1]."),
        (lambda: ix.sparse(([0, 1],), [1.0], (2,)),
         "SparseArray: values float32[1] for entries at coordinates int32[2]."),
        (lambda: ix.relation([(0, 1), (1, 1), (1, 0)], (2, 2)),
         "Relation: 3 arrays of coordinates for 2 axes, (2, 2). Coordinates of one entry after another are those of "
         "zip(*coords)."),
        (lambda: ix.relation(np.eye(2) > 0, (2, 2)),
         "Relation: coordinates along axis 0 must be integers of one axis, not bool[2]. Those of a boolean array are "
         "numpy.nonzero(array)."),
        (lambda: ix.relation(([0], [1]), 3), "Relation: shape must be a sequence of integers, not 3."),
        (lambda: ix.relation((3, 4), ([0], [1])), "Relation: shape must be a sequence of integers, not ([0], [1])."),
        (lambda: ix.relation(([0], [1]), (3, 4.5)), "Relation: shape must be a sequence of integers, not (3, 4.5)."),
        (lambda: ix.relation(([0], [1]), (3, -4)), "Relation: shape (3, -4) has a negative size."),
        (lambda: ix.relation(7, (3, 4)), "Relation: expected an array of coordinates for each axis of (3, 4), not 7."),
    ],
)  # fmt: skip
def test_coordinates(make, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        make()
    assert text_of(caught.value) == message


@pytest.mark.parametrize(
    "read",
    [
        lambda a, i: a[i], lambda a, i: a[i + 1], lambda a, i: a[i, 0], lambda a, i: a[0, i], lambda a, i: a[:, i],
        lambda a, i: a[..., i], lambda a, i: a[a[i].astype(int)], lambda a, i: a[i].tolist(),
        lambda a, i: a.tolist()[i],        lambda a, i: np.take(a, i), lambda a, i: a.astype(np.float16)[i],
    ],
)  # fmt: skip
def test_arrays_of_numpy_are_read_by_index_array(read):
    """Indexed themselves, they say how; as `index.array`, in a body or before, they are read."""
    a = np.arange(6.0).reshape(2, 3)
    with pytest.raises(TypeError, match=r"Write index\.array\(a\)\[i\] in the place of a\[i\]"):
        ix.build(2, lambda i: read(a, i))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "complex64"])
def test_index_array(dtype: str):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    expected = np.asarray(tnp.asarray(a))
    for f in (lambda a: ix.build((2, 3), lambda i, j: ix.array(a)[i, j]), lambda a: ix.array(a.tolist())):
        for found in (f(a), tl.jit(lambda f=f: f(a))()):
            np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(ix.build(3, lambda i: ix.array([1, 2, 4])[i + 1]), [2, 4, 0])
    np.testing.assert_array_equal(
        tl.grad(lambda x: ix.sum(3, lambda i: ix.array(a)[1, i].real * x[i]))(tnp.ones(3)), a[1].real
    )
