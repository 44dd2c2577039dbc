"""Teach a small network to read handwritten digits: `python examples/digits.py`.

The data are the 1,797 scanned digits (8 x 8 pixels) that come with scikit-learn. One in five is held out; the network
learns from the others by gradient descent with momentum, and is tested on the held-out digits. Takes seconds.
Writes digits.png: the loss curve, and the network's answers for some held-out digits.
"""

import sys
from itertools import pairwise
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from tqdm import tqdm

import tapeless as tl
import tapeless.numpy as tnp

LAYERS = (64, 128, 64, 10)  # 64 pixels in, 10 scores out
EPOCHS, BATCH = 40, 32
LEARNING_RATE, MOMENTUM = 0.05, 0.9


# ---- the network: parameters are plain dictionaries, functions of them are plain functions


@tl.custom_jvp
def swish(x):
    """Compute x * sigmoid(x), a smooth relu."""
    return x / (1 + tnp.exp(-x))


@swish.defjvp
def swish_jvp(primals, tangents):
    """Compute the derivative, rearranged: the plain formula is inf / inf for x < -89, this one is 0."""
    (x,), (t,) = primals, tangents
    sigmoid = 1 / (1 + tnp.exp(-x))
    y = x * sigmoid
    return y, t * (sigmoid + y * (1 - sigmoid))


def init(key):
    """Make one {"weights", "bias"} per layer, with weights scaled so that signals neither grow nor vanish."""
    keys = tl.random.split(key, len(LAYERS) - 1)
    return [
        {"weights": tl.random.normal(k, (n, m)) * (2 / n) ** 0.5, "bias": tnp.zeros(m)}
        for k, (n, m) in zip(keys, pairwise(LAYERS), strict=True)
    ]


def scores(params, images):
    """Map [batch, 64] pixels to [batch, 10] scores; the greatest score is the answer."""
    *hidden, last = params
    x = images
    for layer in hidden:
        x = swish(x @ layer["weights"] + layer["bias"])
    return x @ last["weights"] + last["bias"]


def loss(params, images, labels):
    """Mean of -log(probability given to the right answer)."""
    z = scores(params, images)
    z = z - z.max(axis=1, keepdims=True)
    log_probability = z - tnp.log(tnp.exp(z).sum(axis=1, keepdims=True))
    return -log_probability[tnp.arange(len(labels)), labels].mean()


# ---- learning


@tl.jit
def step(params, velocity, images, labels, rate):
    """Take one step of gradient descent with momentum, compiled as a whole."""
    value, gradient = tl.value_and_grad(loss)(params, images, labels)
    velocity = tl.tree.map(lambda v, g: MOMENTUM * v - rate * g, velocity, gradient)
    params = tl.tree.map(lambda p, v: p + v, params, velocity)
    return params, velocity, value


@tl.jit
def read(params, images):
    return tnp.argmax(scores(params, images), axis=1)


def train(params, images, labels, key):
    """Train for EPOCHS passes over the images, in random order; return the parameters and the loss of every step."""
    velocity = tl.tree.map(tnp.zeros_like, params)
    losses = []
    bar = tqdm(tl.random.split(key, EPOCHS), desc="training", unit="epoch")
    for epoch, epoch_key in enumerate(bar):
        rate = LEARNING_RATE * (1 - epoch / EPOCHS)
        order = np.asarray(tl.random.permutation(epoch_key, len(images)))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            params, velocity, value = step(params, velocity, images[batch], labels[batch], rate)
            losses.append(value)
        bar.set_postfix(loss=f"{float(value):.4f}", refresh=False)
    return params, np.array([float(value) for value in losses])


# ---- looking at it


def picture(path, losses, images, labels, answers):
    """Draw the loss curve over a grid of held-out digits, mistakes first and in red."""
    figure = Figure(figsize=(8, 9.5), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1, 2))

    curve = above.subplots()
    per_epoch = losses.reshape(EPOCHS, -1).mean(axis=1)
    curve.semilogy(np.linspace(0, EPOCHS, len(losses)), losses, color="0.8", linewidth=0.8, label="every step")
    curve.semilogy(np.arange(EPOCHS) + 0.5, per_epoch, color="C0", label="mean of an epoch")
    curve.set(xlabel="epoch", ylabel="loss", title="Training")
    curve.legend(frameon=False)

    right = answers == labels
    shown = np.argsort(right, kind="stable")[:48]
    for axes, i in zip(below.subplots(6, 8).flat, shown, strict=True):
        axes.imshow(images[i].reshape(8, 8), cmap="gray_r")
        text = f"{answers[i]}" if right[i] else f"{answers[i]}, not {labels[i]}"
        axes.set_title(text, fontsize=10, color="black" if right[i] else "red")
        axes.set_axis_off()
    below.suptitle("Held-out digits and what the network reads")
    figure.savefig(path, dpi=120)


def main(path="digits.png"):
    began = perf_counter()
    params_key, split_key, train_key = tl.random.split(tl.random.key(0), 3)

    digits = load_digits()
    images, labels = np.float32(digits.data / 16), np.int32(digits.target)
    order = np.asarray(tl.random.permutation(split_key, len(images)))
    test, rest = order[: len(images) // 5], order[len(images) // 5 :]
    print(f"{len(images)} handwritten digits: {len(rest)} to learn from, {len(test)} held out, on {tl.devices()[0]}")

    params = init(params_key)
    size = sum(leaf.size for leaf in tl.tree.leaves(params))
    print(f"a network of {size:,} parameters, {' -> '.join(map(str, LAYERS))}; {EPOCHS} epochs, batches of {BATCH}")

    params, losses = train(params, images[rest], labels[rest], train_key)
    answers = np.asarray(read(params, images[test]))
    right = (answers == labels[test]).sum()

    picture(path, losses, images[test], labels[test], answers)
    print(f"held-out accuracy {right / len(test):.1%}: {right} of {len(test)} digits read correctly")
    print(f"wrote {path} after {perf_counter() - began:.1f} s in all")


if __name__ == "__main__":
    main(*sys.argv[1:])
