"""What checkpoints save on the GPU, in the memory of the compiled program; moves to the host's memory and back."""

from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.ad_checkpoint import checkpoint_name
from tests.gpu import IS_GPU
from tests.gpu.comparing import on

LAYERS, ROWS, WIDTH = 16, 4096, 64
ACTIVATION = 4 * ROWS * WIDTH
W = np.random.default_rng(0).normal(size=(LAYERS, WIDTH, WIDTH)).astype(np.float32) / 8
X = np.random.default_rng(1).normal(size=(ROWS, WIDTH)).astype(np.float32)


def layer(x: Any, w: Any) -> Any:
    return tnp.tanh(tnp.sin(x @ w) + x)


def unrolled(wrap: Any) -> Any:
    def loss(w: Any, x: Any) -> Any:
        block = wrap(lambda x, w: layer(layer(x, w[0]), w[1]))
        for k in range(0, LAYERS, 2):
            x = block(x, w[k : k + 2])
        return tnp.sum(x)

    return loss


def scanned(wrap: Any) -> Any:
    return lambda w, x: tnp.sum(lax.scan(lambda x, w: (wrap(layer)(x, w), None), x, w)[0])


def temporary_bytes(device: Any, loss: Any) -> int:
    with tl.default_device(device):
        args = [tl.device_put(a, device) for a in (W, X)]
        return tl.jit(tl.grad(loss)).lower(*args).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("program", [unrolled, scanned], ids=lambda f: f.__name__)
def test_checkpoints_save_memory(program: Any, device: Any):
    plain, saved = (temporary_bytes(device, program(wrap)) for wrap in (lambda f: f, tl.checkpoint))
    assert saved <= plain - 6 * ACTIVATION, (plain / ACTIVATION, saved / ACTIVATION)


def test_checkpointed_gradients_agree(device: Any):
    found, wanted = (on(device, tl.grad(unrolled(wrap)), W, X) for wrap in (tl.checkpoint, lambda f: f))
    np.testing.assert_allclose(found[0], wanted[0], rtol=2e-2, atol=2e-3 * np.abs(wanted[0]).max())  # TF32, refused


def test_offloaded_values_come_back(device: Any):
    """The residuals of a name wait in the host's memory; the gradient is that without moving them."""
    policy = tl.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["h"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def loss(wrap: Any) -> Any:
        body = wrap(lambda x, w: tnp.sin(checkpoint_name(tnp.sin(x @ w), "h")))
        return lambda w, x: tnp.sum(body(body(x, w[0]), w[1]))

    moved, plain = loss(lambda f: tl.checkpoint(f, policy=policy)), loss(lambda f: f)
    found, wanted = (on(device, tl.grad(f), W, X) for f in (moved, plain))
    np.testing.assert_allclose(found[0], wanted[0], rtol=2e-2, atol=2e-3 * np.abs(wanted[0]).max())
    if IS_GPU:
        with tl.default_device(device):
            assert "pinned_host" in tl.jit(tl.grad(moved)).lower(W, X).as_text()
        assert "pinned_host" in device.memory_kinds
