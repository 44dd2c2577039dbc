"""Train a deep network in less memory than its gradient needs: `python examples/memory_limit.py`.

A residual network of 160 layers learns all 1,797 digits of scikit-learn at once. The gradient keeps what each layer
computed for the backward pass, a few hundred megabytes. The operating system is told to refuse more than a part of
that (`resource.setrlimit`), in two processes: one computes the gradient as it is, and is refused; the other computes
it under a memory budget, and learns. Takes half a minute. Writes memory_limit.png: what budgets cost, and the loss.
"""

import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import tapeless as tl
import tapeless.numpy as tnp

DEPTH, WIDTH = 160, 96
STEPS, RATE, MOMENTUM = 12, 0.02, 0.9
LIMIT = 128 * 2**20  # bytes that a process may allocate once its program is compiled
BUDGET = "40 MiB"  # of them for what a backward pass needs: the next may begin before those of the last are freed


# ---- the network


def init(key):
    keys = tl.random.split(key, DEPTH + 2)
    return {
        "first": tl.random.normal(keys[0], (64, WIDTH)) * 64**-0.5,
        "hidden": [tl.random.normal(k, (WIDTH, WIDTH)) * WIDTH**-0.5 for k in keys[1:-1]],
        "last": tl.random.normal(keys[-1], (WIDTH, 10)) * WIDTH**-0.5,
    }


def loss(params, images, labels):
    """Mean of -log(probability given to the right answer)."""
    x = images @ params["first"]
    for w in params["hidden"]:
        x = x + tnp.tanh(x @ w) * DEPTH**-0.5
    scores = tl.nn.log_softmax(x @ params["last"])
    return -scores[tnp.arange(len(labels)), labels].mean()


def step(params, velocity, images, labels):
    value, gradients = tl.value_and_grad(loss)(params, images, labels)
    velocity = tl.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, gradients)
    return value, tl.tree.map(lambda p, v: p + v, params, velocity), velocity


def data():
    digits = load_digits()
    return (digits.data / 16).astype(np.float32), digits.target.astype(np.int32)


# ---- one process: a step with a budget or without, under the limit


def allocated():
    """Return the bytes of data of this process."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData"))
    return 1024 * int(line.split()[1])


def train(budget):
    """Train under the limit, and print the losses."""
    params = init(tl.random.key(0))
    state = params, tl.tree.map(tnp.zeros_like, params)
    images, labels = map(tnp.asarray, data())
    train_step = tl.jit(step, memory_budget=budget, donate_argnums=(0, 1)).lower(*state, images, labels).compile()
    most = allocated() + LIMIT
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    for _ in range(STEPS):
        value, *state = train_step(*state, images, labels)
        print(float(value), flush=True)


# ---- both processes, and the picture


def run(budget):
    """Train in a process of its own; return its losses, the last line of its error, and the seconds."""
    began = perf_counter()
    done = subprocess.run([sys.executable, __file__, "--train", budget], capture_output=True, text=True)
    error = next((line for line in done.stderr.splitlines() if "RESOURCE_EXHAUSTED" in line), done.stderr[-500:])
    return [float(line) for line in done.stdout.split()], error, perf_counter() - began


def picture(frontier, losses, path):
    figure = Figure((9, 3.6), layout="constrained")
    cost, learning = figure.subplots(1, 2)
    cost.plot([row.peak / 2**20 for row in frontier.rows], [row.operations for row in frontier.rows], ".-")
    cost.axvline(LIMIT / 2**20, color="tab:red", label="limit of the operating system")
    cost.set(xlabel="MiB live at once", ylabel="operations, over those without", title="What a budget costs")
    cost.legend()
    learning.plot(losses)
    learning.set(xlabel="step", ylabel="loss", title=f"Learning within {BUDGET}")
    figure.savefig(path, dpi=120)


def main(path):
    images, labels = data()
    frontier = tl.frontier(loss, tl.eval_shape(init, tl.random.key(0)), images, labels)
    print(f"The gradient needs {frontier.rows[0].peak / 2**20:.0f} MiB, {LIMIT / 2**20:.0f} MiB are allowed.")
    losses, error, _ = run("")
    assert not losses
    print(f"Without a budget: {error}")
    losses, error, seconds = run(BUDGET)
    print(f"With a budget of {BUDGET}: loss {losses[0]:.2f} -> {losses[-1]:.2f} in {len(losses)} steps", end=", ")
    print(f"{seconds:.0f} s")
    picture(frontier, losses, path)


if __name__ == "__main__":
    if "--train" in sys.argv:
        train(sys.argv[2] or None)
    else:
        main(sys.argv[1] if len(sys.argv) > 1 else "memory_limit.png")
