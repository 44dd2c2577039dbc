"""What do memory budgets save in the compiled gradient, and what do they cost?

Baseline: JAX, the same programs under its checkpoint around the whole function, with each of its named policies. For
every program and policy are printed the temporary bytes that the compiler says the gradient needs, and its operations
and the time of a call, each over those of the same library without a policy. Of loops the compiler counts the body
once, so that there the time is what counts. A budget that cannot be kept is refused, and its row says the least. Where
PyTorch is installed, the first program is partitioned by its `activation_memory_budget`, too, and run op by op.
"""

import argparse
import importlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import Pair, in_turn, libraries, machine, repeated
from benchmarks.programs import PROGRAMS as WHOLE
from benchmarks.programs.program import usual

QUESTION = "What do memory budgets save in the compiled gradient, and what do they cost?"
BUDGETS = (1.0, 0.5, 0.25, 0.1, 0)
POLICIES = ("everything_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable", "nothing_saveable")
TEMPORARIES = 1 << 16  # bytes: programs of fewer are not compared, constants and alignment are most of them
Problem = tuple[Callable[..., Any], tuple[Any, ...]]


def array(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    return (np.random.default_rng([seed, *shape]).normal(size=shape) * 0.1).astype(dtype)


# ---- deep programs, as (function of parameters and inputs, its arguments)


def layers(lib: ModuleType) -> Problem:
    def loss(ws: Any, x: Any) -> Any:
        for w in ws:
            x = lib.numpy.tanh(x @ w)
        return lib.numpy.sum(x)

    return loss, ([array(64, 64, seed=i) for i in range(64)], array(512, 64))


def layers_by_hand(lib: ModuleType) -> Problem:
    """A checkpoint around every eight of the layers, as a user writes it."""

    @lib.checkpoint
    def eight(ws: Any, x: Any) -> Any:
        for w in ws:
            x = lib.numpy.tanh(x @ w)
        return x

    def loss(ws: Any, x: Any) -> Any:
        for i in range(0, 64, 8):
            x = eight(ws[i : i + 8], x)
        return lib.numpy.sum(x)

    return loss, layers(lib)[1]


def block(lib: ModuleType, p: Any, x: Any) -> Any:
    """Compute a block of a transformer, of four heads: [batch, time, features] to the same."""

    def normalized(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred * lib.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)

    tnp, (n, t, c) = lib.numpy, x.shape
    q, k, v = [tnp.reshape(normalized(x) @ p[name], (n, t, 4, c // 4)) for name in "qkv"]
    weights = lib.nn.softmax(tnp.einsum("bihd,bjhd->bhij", q, k) / (c // 4) ** 0.5)
    x = x + tnp.reshape(tnp.einsum("bhij,bjhd->bihd", weights, v), x.shape) @ p["o"]
    return x + lib.nn.gelu(normalized(x) @ p["a"]) @ p["b"]


def of_blocks(c: int, dtype: str, seed: int) -> dict[str, Any]:
    shapes = dict.fromkeys("qkvo", (c, c)) | {"a": (c, 4 * c), "b": (4 * c, c)}
    return {name: array(*shape, dtype=dtype, seed=seed) for name, shape in shapes.items()}


def blocks(lib: ModuleType, number: int = 8, dtype: str = "float32") -> Problem:
    def loss(ps: Any, x: Any) -> Any:
        for p in ps:
            x = block(lib, p, x)
        return lib.numpy.sum(x.astype("float32") ** 2)

    return loss, ([of_blocks(64, dtype, i) for i in range(number)], array(8, 64, 64, dtype=dtype))


def decoder(lib: ModuleType) -> Problem:
    return blocks(lib, 24, lib.numpy.bfloat16)


def scan_of_blocks(lib: ModuleType) -> Problem:
    def loss(ps: Any, x: Any) -> Any:
        x, _ = lib.lax.scan(lambda x, p: (block(lib, p, x), None), x, ps)
        return lib.numpy.sum(x**2)

    stacked = {name: np.stack([of_blocks(64, "float32", i)[name] for i in range(8)]) for name in "qkvoab"}
    return loss, (stacked, array(8, 64, 64))


def recurrent(lib: ModuleType) -> Problem:
    def loss(p: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            return lib.numpy.tanh(h @ p["w"] + x @ p["u"]), None

        return lib.numpy.sum(lib.lax.scan(step, lib.numpy.zeros((16, 64)), xs)[0] ** 2)

    return loss, ({"w": array(64, 64), "u": array(32, 64)}, array(128, 16, 32))


def wave(lib: ModuleType) -> Problem:
    def loss(speed: Any, u: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            u, before = state
            laplacian = sum(lib.numpy.roll(u, s, axis) for axis in (0, 1) for s in (1, -1)) - 4 * u
            return (2 * u - before + 0.1 * lib.numpy.sin(speed) * laplacian, u), None

        return lib.numpy.sum(lib.lax.scan(step, (u, u), None, length=4000)[0][0] ** 2)

    return loss, (np.ones((64, 64), np.float32), array(64, 64))


DEEP: dict[str, Callable[[ModuleType], Problem]] = {
    "64 layers": layers,
    "64 layers, by hand": layers_by_hand,
    "8 blocks": blocks,
    "24 blocks, bfloat16": decoder,
    "scan of 8 blocks": scan_of_blocks,
    "128 recurrent steps": recurrent,
    "wave, 4,000 steps": wave,
}
WHOLE_LARGE = {name: usual(name, program)[1] for name, program in WHOLE.items()}


def problem(name: str, lib: ModuleType) -> Problem:
    """Return the function of a program, deep or whole, and its arguments on the device."""
    if name in DEEP:
        f, args = DEEP[name](lib)
        return f, lib.tree.map(lib.numpy.asarray, args)
    f, _, args = WHOLE_LARGE[name].problem(lib)
    return f, args


class Compiled(NamedTuple):
    """The compiled gradient of a function: its temporary bytes, its operations, and a call that is waited for."""

    temporaries: int
    operations: float
    call: Callable[[], object]


def compiled(lib: ModuleType, f: Callable[..., Any], args: tuple[Any, ...]) -> Compiled:
    gradient = lib.jit(lib.grad(f))
    program = gradient.lower(*args).compile()
    call = repeated(lib, lambda: gradient(*args), 1)
    call()
    return Compiled(program.memory_analysis().temp_size_in_bytes, program.cost_analysis()["flops"], call)


def policies(lib: ModuleType, is_ours: bool) -> Iterator[tuple[str, Any]]:
    """Yield the names and the policies to compare."""
    if is_ours:
        yield from [(f"budget {limit}", lib.checkpoint_policies.budget(limit)) for limit in BUDGETS]
    else:
        yield from [(name, getattr(lib.checkpoint_policies, name)) for name in POLICIES]


def rows(pair: Pair, name: str, repeats: int) -> Iterator[tuple[str, str, tuple[float, ...] | str]]:
    """Yield the library, the policy, and the ratios of bytes, operations and time; or why there are none."""
    for lib in (pair.ours, pair.baseline):
        f, args = problem(name, lib)
        plain = compiled(lib, f, args)
        library = lib.__name__
        yield library, "none", f"{plain.temporaries / 1e6:.2f} MB"
        if plain.temporaries < TEMPORARIES:
            continue
        for policy, value in policies(lib, lib.__name__ == "tapeless"):
            try:
                found = compiled(lib, lib.checkpoint(f, policy=value), args)
            except ValueError as error:
                yield library, policy, "refused:" + str(error).partition(":")[2].partition(". ")[0]
                continue
            ours, others = in_turn(found.call, plain.call, repeats, budget=10)
            bytes_, operations = found.temporaries / plain.temporaries, found.operations / plain.operations
            yield library, policy, (bytes_, operations, min(ours) / min(others))


def of_torch() -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield budgets of PyTorch's partitioner for `layers`, with ratios of bytes saved and of bytes live at once."""
    torch = importlib.import_module("torch")
    settings = importlib.import_module("torch._functorch.config")
    ws, x = [[torch.tensor(w, requires_grad=True) for w in part] for part in (layers(np)[1][0], [array(512, 64)])]

    def loss(ws: Any, x: Any) -> Any:
        for w in ws:
            x = torch.tanh(x @ w)
        return x.sum()

    def measured(f: Callable[..., Any]) -> tuple[int, int]:
        f(ws, x[0]).backward()
        given, saved, live = {t.data_ptr() for t in [*ws, *x]}, dict[int, int](), [0]
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t: (saved.setdefault(t.data_ptr(), t.untyped_storage().nbytes()), t)[1], lambda t: t
        ):
            f(ws, x[0])
        kinds = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=kinds, profile_memory=True) as watched:
            f(ws, x[0]).backward()
        events = [e for e in watched.profiler.kineto_results.events() if e.name() == "[memory]"]
        for event in sorted(events, key=lambda e: e.start_ns()):
            live.append(live[-1] + event.nbytes())
        return sum(n for at, n in saved.items() if at not in given), max(live)

    plain = measured(loss)
    for budget in (0.5, 0.25, 0.1, 0.0):
        torch._dynamo.reset()
        settings.activation_memory_budget = budget
        found = measured(torch.compile(loss, backend="aot_eager_decomp_partition"))
        yield f"activation_memory_budget {budget}", (found[0] / plain[0], found[1] / plain[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=QUESTION)
    parser.add_argument("--control", action="store_true", help="the baseline on both sides")
    parser.add_argument("--only", default="", help="run programs whose name contains this")
    parser.add_argument("--whole", action="store_true", help="the programs of benchmarks.programs, too")
    parser.add_argument("--repeats", type=int, default=5, help="samples of each time")
    given = parser.parse_args()
    pair, worst = libraries(given.control), (0.0, "")
    print(f"{QUESTION}\n{machine()}\n\n{'':46}  temporaries  operations  time")
    for name in [*DEEP, *(WHOLE_LARGE if given.whole else ())]:
        if given.only not in name:
            continue
        print(name)
        for library, policy, found in rows(pair, name, given.repeats):
            row = found if isinstance(found, str) else "".join(f"{x:{n}.2f}" for x, n in zip(found, (11, 12, 6)))
            print(f"  {library} {policy:{42 - len(library)}} {row}", flush=True)
            if library == "tapeless" and not isinstance(found, str):
                worst = max(worst, (found[0], f"{name}, {policy}"))
    if find_spec("torch") and given.only in "64 layers":
        print("64 layers, PyTorch: bytes saved, and live at once, over those without a budget")
        for policy, (saved, live) in of_torch():
            print(f"  torch {policy:37} {saved:11.2f}{live:12.2f}")
    print(f"\nThe most temporaries under a budget, over those without: {worst[0]:.2f}, {worst[1]}.")


if __name__ == "__main__":
    main()
