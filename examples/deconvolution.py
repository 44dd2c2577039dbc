"""Remove the blur from a photograph: `python examples/deconvolution.py`.

Given are a photograph that comes with scikit-learn, and the same photograph taken with a shaking hand. Which path did
the hand follow? The blur is a formula of elements, y[i, j] = sum k[u, v] x[i + u, j + v], in the index language. Least
squares give the kernel k. The gradient of the squared error, derived from the types and printed, consists of two
stencils, and needs neither a gather nor a scatter.

With this kernel, another photograph taken by the same hand is sharpened: now x is unknown, and the gradient with
respect to x is a third stencil. Both problems are linear, and conjugate gradients solve them with products by the
Hessian, the `jvp` of the gradient. Takes seconds. Writes deconvolution.png.
"""

import sys
from functools import partial
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_image

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import index as ix
from tapeless import lax

SIZE, WIDTH, NOISE = 160, 11, 0.004  # pixels of a photograph and of the kernel; deviation of pixels from 0 to 1
SMOOTH, STEPS = 2e-4, 150  # weight of differences between neighbours; steps for the photograph


# ---- the formulas


def blurred(k, x):
    """Compute y[i, j] = sum k[u, v] x[i + u, j + v] for positions where the kernel is inside of x."""
    m, n = (a - b + 1 for a, b in zip(x.shape, k.shape))
    return ix.build((m, n), lambda i, j: ix.sum(k.shape, lambda u, v: k[u, v] * x[i + u, j + v]))


def misfit(k, x, y):
    m, n = y.shape
    z = blurred(k, x)
    return 0.5 * ix.sum((m, n), lambda i, j: (z[i, j] - y[i, j]) ** 2)


def roughness(x):
    m, n = x.shape
    return 0.5 * ix.sum((m - 1, n), lambda i, j: (x[i + 1, j] - x[i, j]) ** 2) + 0.5 * ix.sum(
        (m, n - 1), lambda i, j: (x[i, j + 1] - x[i, j]) ** 2
    )


def regularized(x, k, y):
    return misfit(k, x, y) + SMOOTH * roughness(x)


# ---- least squares


def least(f, start, steps):
    """Minimize a quadratic function by conjugate gradients (Hestenes & Stiefel 1952)."""
    gradient = tl.grad(f)

    def step(_, state):
        x, r, p = state
        q = tl.jvp(gradient, (start,), (p,))[1]
        a = tnp.vdot(r, r) / tnp.vdot(p, q)
        new = r - a * q
        return x + a * p, new, new + tnp.vdot(new, new) / tnp.vdot(r, r) * p

    r = -gradient(start)
    return lax.fori_loop(0, steps, step, (start, r, r))[0]


@tl.jit
def found_kernel(x, y):
    """Find the kernel, which is not negative and adds up to 1."""
    k = least(partial(misfit, x=x, y=y), tnp.zeros((WIDTH, WIDTH), x.dtype), WIDTH**2)
    k = tnp.maximum(k, 0)
    return k / k.sum()


@tl.jit
def sharpened(k, y):
    return least(partial(regularized, k=k, y=y), tnp.pad(y, WIDTH // 2, mode="edge"), STEPS)


# ---- the photographs


def shaking(rng):
    """Make a kernel along the path of a hand."""
    path = np.cumsum(np.cumsum(rng.standard_normal((200, 2)), 0), 0)
    path = (path - path.min(0)) / np.ptp(path, 0).max() * (WIDTH - 3) + 1
    k, _, _ = np.histogram2d(*path.T, bins=WIDTH, range=[(0, WIDTH)] * 2)
    return k / k.sum()


def gray(name):
    photograph = load_sample_image(name).mean(-1)[::2, ::2] / 255
    return photograph[-SIZE:, :SIZE]


def taken(k, x, rng):
    y = np.asarray(tl.jit(blurred)(k, x))
    return y + NOISE * rng.standard_normal(y.shape)


def inner(x):
    margin = WIDTH // 2
    return x[margin:-margin, margin:-margin]


def deviation(x, y):
    return float(np.sqrt(np.mean((np.asarray(x) - y) ** 2)))


def picture(path, kernels, photographs):
    figure = Figure(figsize=(9, 5.4), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=[2, 3])
    for part, images in ((above, kernels), (below, photographs)):
        for axes, (title, image) in zip(part.subplots(1, len(images)), images.items()):
            axes.imshow(
                image, cmap="gray" if part is below else "magma", vmin=0, vmax=max(map(np.max, images.values()))
            )
            axes.set_title(title)
            axes.set_axis_off()
    figure.savefig(path, dpi=120)


def main(path="deconvolution.png"):
    began = perf_counter()
    rng = np.random.default_rng(3)
    k, known, other = shaking(rng), gray("china.jpg"), gray("flower.jpg")
    shape = SIZE - WIDTH + 1
    spaces = ix.Space("k", k.shape), ix.Space("x", known.shape), ix.Space("y", (shape, shape))
    print(ix.grad(misfit, (0, 1))(*spaces))

    found = np.asarray(found_kernel(known, taken(k, known, rng)))
    print(f"kernel: {deviation(found, k) / np.sqrt(np.mean(k**2)):.1%} off")
    y = taken(k, other, rng)
    x = np.asarray(sharpened(found, y))
    before, after = deviation(y, inner(other)), deviation(inner(x), inner(other))
    print(f"photograph: deviation {before:.4f} as taken, {after:.4f} sharpened")
    picture(
        path,
        {"the hand": k, "found": found, "difference": np.abs(found - k)},
        {"sharp": inner(other), "as taken": y, "sharpened": np.clip(inner(x), 0, 1)},
    )
    print(f"wrote {path} after {perf_counter() - began:.1f} s in all")


if __name__ == "__main__":
    main(*sys.argv[1:])
