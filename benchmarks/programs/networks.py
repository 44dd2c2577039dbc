"""Neural networks: attention with dropout, convolutions, recurrences, messages on a graph, an autoencoder."""

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.programs.program import Problem, Program

KEY = np.array([0, 7], np.uint32)


def scaled(rng: np.random.Generator, *shape: int) -> Any:
    """Draw weights whose columns have length one."""
    return rng.normal(size=shape) / np.prod(shape[:-1]) ** 0.5


def cross_entropy(lib: ModuleType, logits: Any, labels: Any) -> Any:
    chosen = lib.numpy.take_along_axis(lib.nn.log_softmax(logits), labels[..., None], axis=-1)
    return -lib.numpy.mean(chosen)


def normalised(lib: ModuleType, x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * lib.lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * scale + shift


def transformer(lib: ModuleType, layers: int, heads: int, head: int, tokens: int, batch: int) -> Problem:
    """Compute the cross-entropy of a decoder of attention layers, with dropout and tied embeddings."""
    tnp, rng, width, vocabulary = lib.numpy, np.random.default_rng(10), heads * head, 4 * head
    norm = {"scale": np.ones(width), "shift": np.zeros(width)}
    parameters = {
        "embedding": scaled(rng, vocabulary, width),
        "position": scaled(rng, tokens, width),
        "norm": norm,
        "layers": [
            {
                "attention": norm,
                "qkv": scaled(rng, width, 3 * width),
                "out": scaled(rng, width, width),
                "mlp": norm,
                "up": scaled(rng, width, 4 * width),
                "down": scaled(rng, 4 * width, width),
            }
            for _ in range(layers)
        ],
    }

    def dropout(x: Any, key: Any) -> Any:
        return tnp.where(lib.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0)

    def attention(layer: Any, x: Any) -> Any:
        q, k, v = tnp.split(x @ layer["qkv"], 3, axis=-1)
        q, k, v = (y.reshape(*y.shape[:2], heads, head).transpose(0, 2, 1, 3) for y in (q, k, v))
        scores = q @ k.swapaxes(-1, -2) / head**0.5
        seen = tnp.tril(tnp.ones(scores.shape[-2:], bool))
        weights = lib.nn.softmax(tnp.where(seen, scores, -1e9))
        return (weights @ v).transpose(0, 2, 1, 3).reshape(x.shape) @ layer["out"]

    def loss(p: Any, tokens: Any, targets: Any, key: Any) -> Any:
        x = p["embedding"][tokens] + p["position"]
        for layer in p["layers"]:
            key, first, second = lib.random.split(key, 3)
            x = x + dropout(attention(layer, normalised(lib, x, **layer["attention"])), first)
            hidden = lib.nn.gelu(normalised(lib, x, **layer["mlp"]) @ layer["up"])
            x = x + dropout(hidden @ layer["down"], second)
        return cross_entropy(lib, normalised(lib, x, **p["norm"]) @ p["embedding"].T, targets)

    return loss, (parameters, *rng.integers(0, vocabulary, (2, batch, tokens)), KEY)


def convolved(lib: ModuleType, x: Any, kernel: Any, stride: int = 1) -> Any:
    names = ("NHWC", "HWIO", "NHWC")
    return lib.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=names)


def convolutional(lib: ModuleType, batch: int, cells: int, channels: int) -> Problem:
    """Compute the cross-entropy of a network of two convolutions with pooling, and two dense layers."""
    tnp, rng = lib.numpy, np.random.default_rng(11)
    parameters = {
        "first": scaled(rng, 3, 3, 3, channels),
        "second": scaled(rng, 3, 3, channels, 2 * channels),
        "dense": scaled(rng, cells * cells * 2 * channels, 64),
        "out": scaled(rng, 64, 10),
    }

    def pooled(x: Any) -> Any:
        return lib.lax.reduce_window(x, -np.inf, lib.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def loss(p: Any, images: Any, labels: Any) -> Any:
        x = pooled(lib.nn.relu(convolved(lib, images, p["first"])))
        x = pooled(lib.nn.relu(convolved(lib, x, p["second"])))
        x = tnp.tanh(x.reshape(len(x), -1) @ p["dense"])
        return cross_entropy(lib, x @ p["out"], labels)

    images = rng.normal(size=(batch, 4 * cells, 4 * cells, 3))
    return loss, (parameters, images, rng.integers(0, 10, batch))


def u_net(lib: ModuleType, batch: int, cells: int, channels: int) -> Problem:
    """Compute the denoising loss of a network that halves images twice, doubles them twice, and joins equal sizes."""
    tnp, rng, c = lib.numpy, np.random.default_rng(12), channels
    inputs = {"enter": (1, c), "down": (c, 2 * c), "middle": (2 * c, 2 * c), "up": (4 * c, c), "leave": (2 * c, 1)}
    parameters = {name: {"kernel": scaled(rng, 3, 3, *io), "bias": np.zeros(io[1])} for name, io in inputs.items()}

    def block(p: Any, x: Any, stride: int = 1) -> Any:
        x = convolved(lib, x, p["kernel"], stride)
        centred = x - x.mean(axis=(1, 2), keepdims=True)
        scale = lib.lax.rsqrt((centred**2).mean(axis=(1, 2), keepdims=True) + 1e-5)
        return lib.nn.silu(centred * scale + p["bias"])

    def doubled(x: Any) -> Any:
        return tnp.repeat(tnp.repeat(x, 2, axis=1), 2, axis=2)

    def loss(p: Any, images: Any, key: Any) -> Any:
        noise = lib.random.normal(key, images.shape, images.dtype)
        whole = block(p["enter"], images + noise)
        half = block(p["down"], whole, 2)
        quarter = block(p["middle"], half, 2)
        x = block(p["up"], tnp.concatenate([doubled(quarter), half], axis=-1))
        x = tnp.concatenate([doubled(x), whole], axis=-1)
        x = convolved(lib, x, p["leave"]["kernel"]) + p["leave"]["bias"]
        return tnp.mean((x - noise) ** 2)

    return loss, (parameters, rng.normal(size=(batch, 4 * cells, 4 * cells, 1)), KEY)


def lstm(lib: ModuleType, layers: int, units: int, steps: int, batch: int) -> Problem:
    """Compute the cross-entropy of a stacked LSTM's predictions of the next character."""
    tnp, rng, characters = lib.numpy, np.random.default_rng(13), 28
    sizes = [characters] + [units] * (layers - 1)
    parameters = {
        "layers": [{"w": scaled(rng, n + units, 4 * units), "b": np.zeros(4 * units)} for n in sizes],
        "out": scaled(rng, units, characters),
    }

    def loss(p: Any, text: Any) -> Any:
        def step(states: Any, characters_now: Any) -> Any:
            x, after = lib.nn.one_hot(characters_now, characters, dtype=p["out"].dtype), []
            for layer, (h, c) in zip(p["layers"], states):
                gates = tnp.concatenate([x, h], axis=1) @ layer["w"] + layer["b"]
                i, f, o, g = tnp.split(gates, 4, axis=1)
                c = lib.nn.sigmoid(f) * c + lib.nn.sigmoid(i) * tnp.tanh(g)
                x = lib.nn.sigmoid(o) * tnp.tanh(c)
                after.append((x, c))
            return after, x @ p["out"]

        zero = tnp.zeros((batch, units), p["out"].dtype)
        _, logits = lib.lax.scan(step, [(zero, zero)] * layers, text[:-1])
        return cross_entropy(lib, logits, text[1:])

    return loss, (parameters, rng.integers(0, characters, (steps + 1, batch)))


def graph_network(lib: ModuleType, nodes: int, degree: int, width: int) -> Problem:
    """Compute the squared error of a network that passes messages along the edges of a graph, three times."""
    tnp, rng, edges = lib.numpy, np.random.default_rng(14), nodes * degree
    parameters = [{"message": scaled(rng, 2 * width, width), "update": scaled(rng, 2 * width, width)} for _ in range(3)]

    def loss(p: Any, nodes: Any, targets: Any, senders: Any, receivers: Any) -> Any:
        x = nodes
        for layer in p:
            messages = lib.nn.relu(tnp.concatenate([x[senders], x[receivers]], axis=1) @ layer["message"])
            received = lib.ops.segment_sum(messages, receivers, len(nodes)) / degree
            x = x + tnp.tanh(tnp.concatenate([x, received], axis=1) @ layer["update"])
        return tnp.mean((x - targets) ** 2)

    return loss, (parameters, *rng.normal(size=(2, nodes, width)), *rng.integers(0, nodes, (2, edges)))


def autoencoder(lib: ModuleType, batch: int, pixels: int, latent: int) -> Problem:
    """Compute the evidence lower bound of a variational autoencoder, with one sample of the latent variables."""
    tnp, rng = lib.numpy, np.random.default_rng(15)
    parameters = {
        "encode": scaled(rng, pixels, 64),
        "mean": scaled(rng, 64, latent),
        "log_scale": scaled(rng, 64, latent),
        "decode": scaled(rng, latent, 64),
        "out": scaled(rng, 64, pixels),
    }

    def loss(p: Any, images: Any, key: Any) -> Any:
        hidden = lib.nn.softplus(images @ p["encode"])
        mean, log_scale = hidden @ p["mean"], hidden @ p["log_scale"]
        z = mean + tnp.exp(log_scale) * lib.random.normal(key, mean.shape, mean.dtype)
        logits = lib.nn.softplus(z @ p["decode"]) @ p["out"]
        likelihood = tnp.sum(images * logits - lib.nn.softplus(logits))
        divergence = tnp.sum(mean**2 + tnp.exp(2 * log_scale) - 1 - 2 * log_scale) / 2
        return (divergence - likelihood) / len(images)

    return loss, (parameters, rng.uniform(size=(batch, pixels)), KEY)


def unrolled_recurrence(lib: ModuleType, steps: int, width: int) -> Problem:
    """Compute a gated recurrence, its steps written out, that reads its input by indexing."""
    tnp, rng = lib.numpy, np.random.default_rng(16)
    parameters = {name: scaled(rng, width, width) for name in ("update", "candidate", "input")}

    def loss(p: Any, xs: Any) -> Any:
        h = tnp.zeros(xs.shape[1:], xs.dtype)
        for i in range(steps):
            z = 1 / (1 + tnp.exp(-(h @ p["update"] + xs[i])))
            h = (1 - z) * h + z * tnp.tanh(h @ p["candidate"] + xs[i] @ p["input"])
        return tnp.sum(tnp.where(h > 0, h, 0.1 * h))

    return loss, (parameters, rng.normal(size=(steps, 8, width)))


PROGRAMS = {
    "transformer with dropout": Program(
        transformer,
        {"layers": 1, "heads": 2, "head": 8, "tokens": 8, "batch": 2},
        {"layers": 4, "heads": 4, "head": 32, "tokens": 64, "batch": 4},
    ),
    "convolutional network": Program(
        convolutional, {"batch": 4, "cells": 2, "channels": 4}, {"batch": 32, "cells": 8, "channels": 16}
    ),
    "U-net": Program(u_net, {"batch": 1, "cells": 2, "channels": 4}, {"batch": 4, "cells": 16, "channels": 16}),
    "LSTM": Program(
        lstm,
        {"layers": 1, "units": 16, "steps": 10, "batch": 2},
        {"layers": 2, "units": 128, "steps": 50, "batch": 16},
    ),
    "graph network": Program(
        graph_network, {"nodes": 20, "degree": 3, "width": 8}, {"nodes": 2000, "degree": 8, "width": 32}
    ),
    "variational autoencoder": Program(
        autoencoder, {"batch": 8, "pixels": 64, "latent": 4}, {"batch": 128, "pixels": 784, "latent": 16}
    ),
    "unrolled recurrence": Program(unrolled_recurrence, {"steps": 10, "width": 8}, {"steps": 50, "width": 24}),
}
