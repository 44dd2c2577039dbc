"""Teach a small recurrent network to write like this project's documentation: `python examples/text.py`.

The text is the Markdown files of the project, read letter by letter. A gated recurrent unit (Cho et al. 2014) runs
along it in a scan. Its gradient needs the residuals of every step; checkpoints keep only the state of every sixteenth
step, and compute the steps between again. Takes half a minute. Writes text.png: the loss, and the memory of a
training step with and without checkpoints, as the compiler counts it.
"""

import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax

STATE, LETTER = 160, 32  # sizes of the network's memory, and of the vector that stands for a letter
BATCH, LENGTH, CHUNK = 24, 96, 16  # passages at once, letters of a passage, steps between checkpoints
STEPS, RATE = 320, 4e-3


# ---- the network


def init(key, letters):
    keys = tl.random.split(key, 3)
    scale = (LETTER + STATE) ** -0.5
    return {
        "letters": tl.random.normal(keys[0], (letters, LETTER)),
        "gates": tl.random.normal(keys[1], (LETTER + STATE, 2 * STATE)) * scale,
        "gates_bias": tnp.zeros(2 * STATE),
        "new": tl.random.normal(keys[2], (LETTER + STATE, STATE)) * scale,
        "scores": tnp.zeros((STATE, letters)),
        "scores_bias": tnp.zeros(letters),
    }


def sigmoid(x):
    return 0.5 * (tnp.tanh(0.5 * x) + 1)


def unit(params, state, letter):
    """Compute the state after one more letter, for a batch: [batch, STATE], [batch] -> [batch, STATE]."""
    x = params["letters"][letter]
    keep, use = tnp.split(sigmoid(tnp.concatenate([x, state], 1) @ params["gates"] + params["gates_bias"]), 2, axis=1)
    new = tnp.tanh(tnp.concatenate([x, use * state], 1) @ params["new"])
    return keep * state + (1 - keep) * new


def scores(params, state):
    """Compute how likely every letter is to come next, as a logarithm up to a constant."""
    return state @ params["scores"] + params["scores_bias"]


def loss(params, passages, checkpointed=True):
    """Mean of -log(probability of the letter that follows), in nats: [batch, LENGTH + 1] letters -> [].

    Two scans: over chunks, and over the letters of a chunk.
    """

    def step(state, pair):
        letter, following = pair
        state = unit(params, state, letter)
        z = scores(params, state)
        z = z - z.max(axis=1, keepdims=True)
        log_probability = z - tnp.log(tnp.exp(z).sum(axis=1, keepdims=True))
        return state, log_probability[tnp.arange(len(following)), following].mean()

    def chunk(state, pairs):
        return lax.scan(step, state, pairs)

    letters, following = passages[:, :-1].T, passages[:, 1:].T
    chunks = letters.reshape(-1, CHUNK, len(passages)), following.reshape(-1, CHUNK, len(passages))
    start = tnp.zeros((len(passages), STATE))
    _, per_letter = lax.scan(tl.checkpoint(chunk) if checkpointed else chunk, start, chunks)
    return -per_letter.mean()


# ---- learning


@tl.jit
def step(params, moments, count, passages):
    """Take one step of Adam (Kingma & Ba 2015)."""
    value, gradient = tl.value_and_grad(loss)(params, passages)
    mean = tl.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradient)
    square = tl.tree.map(lambda s, g: 0.99 * s + 0.01 * g**2, moments[1], gradient)
    rate = RATE * tnp.sqrt(1 - 0.99**count) / (1 - 0.9**count)
    params = tl.tree.map(lambda p, m, s: p - rate * m / (tnp.sqrt(s) + 1e-6), params, mean, square)
    return params, (mean, square), value


def train(params, text, key):
    """Train on passages at random places; return the parameters and the loss of every step."""
    rng = np.random.default_rng(int(tl.random.randint(key, (), 0, 2**31 - 1)))
    moments = tl.tree.map(tnp.zeros_like, params), tl.tree.map(tnp.zeros_like, params)
    losses = []
    bar = tqdm(range(STEPS), desc="training", unit="step")
    for i in bar:
        places = rng.integers(0, len(text) - LENGTH - 1, BATCH)
        passages = text[places[:, None] + np.arange(LENGTH + 1)]
        params, moments, value = step(params, moments, np.float32(i + 1), passages)
        losses.append(float(value))
        bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
    return params, np.array(losses)


@tl.jit
def write(params, key, first):
    """Draw 400 letters from the network, one after another."""

    def next_letter(carry, key):
        state, letter = carry
        state = unit(params, state, letter)
        letter = tl.random.categorical(key, scores(params, state) / 0.7)
        return (state, letter), letter[0]

    start = tnp.zeros((1, STATE)), first
    return lax.scan(next_letter, start, tl.random.split(key, 400))[1]


# ---- looking at it


def memory(params, passages, checkpointed):
    """Return the bytes that the compiled gradient needs in addition to its arguments and results."""
    gradient = tl.jit(tl.grad(lambda p, x: loss(p, x, checkpointed)))
    return gradient.lower(params, passages).compile().memory_analysis().temp_size_in_bytes


def picture(path, losses, held_out, kept):
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    left.plot(losses, color="0.8", linewidth=0.8, label="every step")
    smooth = np.convolve(losses, np.ones(20) / 20, "valid")
    left.plot(np.arange(len(smooth)) + 10, smooth, color="C0", label="mean of 20")
    left.axhline(held_out, color="C3", linestyle="--", label="held out, at the end")
    left.set(xlabel="step", ylabel="nats for a letter", title="Training")
    left.legend(frameon=False)
    right.bar(list(kept), [n / 1e6 for n in kept.values()], color=["C0", "0.7"])
    right.set(ylabel="MB of temporary memory", title="The gradient of one step")
    figure.savefig(path, dpi=120)


def main(path="text.png"):
    began = perf_counter()
    root = Path(__file__).resolve().parent.parent
    files = sorted(
        {*root.glob("*.md"), *root.glob("docs/**/*.md")} - {root / "docs/primitives.md", root / "docs/rewrites.md"}
    )  # tables
    whole = "\n".join(file.read_text() for file in files)
    alphabet = sorted(set(whole))
    text = np.array([alphabet.index(letter) for letter in whole], np.int32)
    cut = len(text) * 9 // 10
    print(f"{len(text):,} letters, {len(alphabet)} different ones; the last tenth is held out")

    init_key, train_key, write_key = tl.random.split(tl.random.key(0), 3)
    params = init(init_key, len(alphabet))
    print(f"a network of {sum(leaf.size for leaf in tl.tree.leaves(params)):,} parameters, {STEPS} steps")
    params, losses = train(params, text[:cut], train_key)

    places = np.arange(cut, len(text) - LENGTH - 1, LENGTH)
    held_out = float(tl.jit(loss)(params, text[places[:, None] + np.arange(LENGTH + 1)]))
    passages = np.zeros((BATCH, LENGTH + 1), np.int32)
    kept = {"checkpoints": memory(params, passages, True), "none": memory(params, passages, False)}
    picture(path, losses, held_out, kept)

    print("the network writes:")
    print("".join(alphabet[i] for i in np.asarray(write(params, write_key, np.array([alphabet.index("T")], np.int32)))))
    print(f"held-out loss {held_out:.3f} nats for a letter; guessing blindly costs {np.log(len(alphabet)):.3f}")
    print(f"a gradient takes {kept['checkpoints'] / 1e6:.1f} MB with checkpoints, {kept['none'] / 1e6:.1f} MB without")
    print(f"wrote {path} after {perf_counter() - began:.1f} s in all")


if __name__ == "__main__":
    main(*sys.argv[1:])
