"""Two moves in a row are one."""

import numpy as np
import pytest

import tapeless.numpy as tnp
from tapeless import lax
from tests.interpreters.simplifications.programs import A, X, after, names


@pytest.mark.parametrize(
    "f",
    [
        lambda a: a.T.T,
        lambda a: a.reshape(256).reshape(16, 16),
        lambda a: lax.rev(lax.rev(a, (0, 1)), (0, 1)),
        lambda a: lax.pad(a, 0.0, [(0, 0, 0), (0, 0, 0)]),
        lambda a: a[:, None].reshape(16, 1, 16, 1).reshape(16, 16),
        lambda a: tnp.split(a, 1)[0],
        lambda a: tnp.sum(a[None], 0),
    ],
)
def test_nothing_is_done(f):
    assert names(after(f, A)) == []


@pytest.mark.parametrize(
    "f, x, expected",
    [
        (lambda a: tnp.transpose(tnp.transpose(a, (1, 2, 0)), (1, 2, 0)), A.reshape(4, 8, 8), ["transpose"]),
        (lambda x: tnp.broadcast_to(x[:, None], (16, 4)), X, ["broadcast_in_dim"]),
        (lambda x: tnp.broadcast_to(x, (4, 16)).T, X, ["broadcast_in_dim"]),
        (lambda a: tnp.transpose(tnp.broadcast_to(a, (3, 16, 16)), (2, 0, 1)), A, ["transpose", "broadcast_in_dim"]),
        (lambda x: tnp.broadcast_to(tnp.broadcast_to(x, (4, 16)), (2, 4, 16)), X, ["broadcast_in_dim"]),
        (lambda x: tnp.broadcast_to(x, (4, 16)).reshape(4, 1, 16), X, ["broadcast_in_dim"]),
        (lambda x: tnp.full((4, 4), x[0]).reshape(16), X, ["slice", "reshape", "broadcast_in_dim"]),
        (lambda x: x[2:14:2][1:5:3], X, ["slice"]),
        (lambda a: lax.rev(lax.rev(a, (0,)), (0, 1)), A, ["rev"]),
        (lambda a: tnp.sum(tnp.sum(a, 0), 0), A, ["reduce_sum"]),
        (lambda x: tnp.sum(tnp.broadcast_to(x, (8, 16)), 0), X, ["mul"]),
        (lambda x: lax.dot_general(x[0], x, (((), ()), ((), ()))), X, ["slice", "reshape", "mul"]),
    ],
)
def test_fewer_moves(f, x, expected):
    assert names(after(f, x)) == expected


def test_what_is_empty():
    assert after(lambda a: tnp.sum(tnp.broadcast_to(a, (0, 16)), 0), X).out_avals[0].shape == (16,)
    assert after(lambda a: a.reshape(3, 0).T.reshape(0, 5)[:, 2], np.zeros((0, 2))).out_avals[0].shape == (0,)
