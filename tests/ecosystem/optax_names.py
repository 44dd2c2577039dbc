"""Optax's public names, once: optimizers and transformations for five steps, losses, schedules, projections, trees."""

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from optax import contrib, losses, projections, schedules, second_order

RNG = np.random.default_rng(0)
A = jnp.asarray(RNG.normal(size=(4, 3)).astype(np.float32))
START = {"w": 0.5 * A, "b": jnp.ones(3)}
STEPS = 5

AT_A_RATE = """adabelief adagrad adam adamax adamaxw adamw adan amsgrad fromage lamb lars lion nadam nadamw novograd
    optimistic_adam_v2 polyak_sgd radam rmsprop rprop sgd sign_sgd signum sm3 yogi adadelta adafactor""".split()
BY_THEMSELVES = """centralize identity scale_by_adadelta scale_by_adam scale_by_adamax scale_by_adan scale_by_amsgrad
    scale_by_belief scale_by_factored_rms scale_by_lbfgs scale_by_lion scale_by_novograd scale_by_optimistic_gradient
    scale_by_param_block_norm scale_by_param_block_rms scale_by_radam scale_by_rms scale_by_rss scale_by_sign
    scale_by_sm3 scale_by_stddev scale_by_trust_ratio scale_by_yogi set_to_zero zero_nans normalize_by_update_norm
    keep_params_nonnegative""".split()
CONTRIBUTED = "acprop ademamix adopt dadapt_adamw dog madgrad prodigy simplified_ademamix".split()
SCHEDULE = optax.cosine_onecycle_schedule(STEPS, 0.1)
MASK = {"w": True, "b": False}

TRANSFORMATIONS: dict[str, Any] = {
    **{name: getattr(optax, name)(0.05) for name in AT_A_RATE},
    **{name: getattr(optax, name)() for name in BY_THEMSELVES},
    **{name: getattr(contrib, name)() for name in ("cocob", "dowg", "momo", "momo_adam")},
    **{name: getattr(contrib, name)(0.05) for name in CONTRIBUTED},
    "noisy": optax.noisy_sgd(0.1, key=jax.random.key(1)),
    "optimistic": optax.optimistic_gradient_descent(0.1),
    "muon": contrib.muon(0.05),
    "galore": contrib.galore(0.05, rank=2),
    "mechanize": contrib.mechanize(optax.sgd(0.1)),
    "plateau": contrib.reduce_on_plateau(patience=1),
    "schedule free": contrib.schedule_free_adamw(0.05, warmup_steps=2),
    "complex": contrib.split_real_and_imaginary(optax.adam(0.1)),
    "agc": optax.adaptive_grad_clip(0.1),
    "decay": optax.chain(optax.add_decayed_weights(0.1, mask=MASK), optax.scale_by_learning_rate(0.1)),
    "noise": optax.add_noise(0.1, 0.5, key=jax.random.key(3)),
    "every": optax.apply_every(2),
    "finite": optax.apply_if_finite(optax.adam(0.1), 3),
    "clips": optax.named_chain(("a", optax.clip(0.5)), ("b", optax.clip_by_block_rms(0.3)), ("c", optax.scale(-0.1))),
    "global norm": optax.chain(optax.clip_by_global_norm(0.5), optax.trace(0.9, nesterov=True)),
    "ema": optax.ema(0.9),
    "flat": optax.flatten(optax.adam(0.1)),
    "frozen": optax.chain(optax.freeze(MASK), optax.sgd(0.1)),
    "masked": optax.masked(optax.adam(0.1), MASK),
    "partition": optax.partition({"x": optax.adam(0.1), "y": optax.sgd(0.1)}, {"w": "x", "b": "y"}),
    "conditional": optax.conditionally_transform(optax.scale(0.5), lambda step: step % 2 == 0),
    "injected": optax.inject_hyperparams(optax.adamw)(learning_rate=SCHEDULE, weight_decay=0.1),
    "many steps": optax.MultiSteps(optax.adam(0.1), 2).gradient_transformation(),
    "skips": optax.MultiSteps(optax.sgd(0.1), 1, should_skip_update_fn=optax.skip_not_finite).gradient_transformation(),
    "by schedule": optax.scale_by_schedule(lambda step: -0.1 / (1 + step)),
    "polyak": optax.scale_by_polyak(),
    "distance": optax.scale_by_distance_over_gradients(),
    "stateless": optax.stateless_with_tree_map(lambda g, p: -0.1 * g),
}
LINE_SEARCHES: dict[str, Any] = {
    "lbfgs": optax.lbfgs(),
    "backtracking": optax.chain(optax.sgd(1.0), optax.scale_by_backtracking_linesearch(10, store_grad=True)),
    "zoom": optax.chain(optax.sgd(1.0), optax.scale_by_zoom_linesearch(10)),
}


def loss(params: Any) -> Any:
    return jnp.sum(jnp.sin(params["w"]) * A + (params["w"] - 0.3) ** 2) + jnp.sum((params["b"] - 2) ** 4) / 4


def stepped(optimizer: Any, params: Any, state: Any) -> Any:
    """One step of a transformation; what it takes besides is passed to all that take more."""
    value, grads = jax.value_and_grad(loss)(params)
    more = {"value": value, "grad": grads, "value_fn": loss}
    updates, state = optax.with_extra_args_support(optimizer).update(grads, state, params, **more)
    return optax.apply_updates(params, updates), state


def trained(optimizers: dict[str, Any]) -> dict[str, Any]:
    """The weights after some steps of each, all of them in one program."""

    @jax.jit
    def step(params: Any, states: Any) -> Any:
        found = {k: stepped(optimizers[k], params[k], states[k]) for k in optimizers}
        return {k: p for k, (p, _) in found.items()}, {k: s for k, (_, s) in found.items()}

    params, states = dict.fromkeys(optimizers, START), {k: o.init(START) for k, o in optimizers.items()}
    for _ in range(STEPS):
        params, states = step(params, states)
    return {k: np.concatenate([np.ravel(x) for x in jax.tree.leaves(p)]).tolist() for k, p in params.items()}


# ---- losses, schedules, projections, trees -------------------------------------------------------------------

LOGITS, LABELS = A, jnp.asarray([0, 2, 1, 1])
SIGNS, CHANCES = jnp.sign(A), jax.nn.softmax(A)
LOSSES: dict[str, Any] = {
    **dict.fromkeys("hinge_loss perceptron_loss l2_loss squared_error huber_loss log_cosh".split(), (LOGITS, SIGNS)),
    **dict.fromkeys("sigmoid_binary_cross_entropy sigmoid_focal_loss".split(), (LOGITS, (SIGNS + 1) / 2)),
    **dict.fromkeys(
        "softmax_cross_entropy safe_softmax_cross_entropy poly_loss_cross_entropy".split(), (LOGITS, CHANCES)
    ),
    **{n: (jnp.log(CHANCES), CHANCES[::-1]) for n in ("kl_divergence", "generalized_kl_divergence")},
    **dict.fromkeys(("cosine_distance", "cosine_similarity"), (LOGITS, CHANCES)),
    **{f"multiclass_{n}_loss": (LOGITS, LABELS) for n in ("hinge", "perceptron", "sparsemax")},
    "softmax_cross_entropy_with_integer_labels": (LOGITS, LABELS),
    "kl_divergence_with_log_targets": (jnp.log(CHANCES), jnp.log(CHANCES[::-1])),
    "sparsemax_loss": (LOGITS, SIGNS > 0),
    "ranking_softmax_loss": (LOGITS, CHANCES),
    "triplet_margin_loss": (LOGITS, LOGITS[::-1], SIGNS),
    "ntxent": (LOGITS, jnp.asarray([0, 1, 0, 1])),
    "dice_loss": (CHANCES[None], (CHANCES[None] > 0.4).astype(jnp.float32)),
    "smooth_labels": (CHANCES, 0.1),
    "ctc_loss": (A[None], jnp.zeros((1, 4)), jnp.asarray([[1, 2]]), jnp.zeros((1, 2))),
}
SCHEDULES: dict[str, Any] = {
    "constant": schedules.constant_schedule(0.1),
    "cosine": schedules.cosine_decay_schedule(0.1, 4, 0.1),
    "cosine cycle": schedules.cosine_onecycle_schedule(8, 0.1),
    "exponential": schedules.exponential_decay(0.1, 2, 0.5, 1, True),
    "joined": schedules.join_schedules([schedules.constant_schedule(1.0), schedules.linear_schedule(1, 0, 3)], [2]),
    "linear": schedules.linear_schedule(0.1, 0.0, 4, 1),
    "linear cycle": schedules.linear_onecycle_schedule(8, 0.1),
    "constants": schedules.piecewise_constant_schedule(0.1, {2: 0.5, 4: 0.1}),
    "interpolated": schedules.piecewise_interpolate_schedule("cosine", 0.1, {2: 0.5, 4: 0.1}),
    "polynomial": schedules.polynomial_schedule(0.1, 0.01, 2, 5),
    "sgdr": schedules.sgdr_schedule([{"init_value": 0.0, "peak_value": 1.0, "decay_steps": 4, "warmup_steps": 2}]),
    "warmup": schedules.warmup_constant_schedule(0.0, 0.1, 3),
    "warmup cosine": schedules.warmup_cosine_decay_schedule(0.0, 0.1, 2, 6, 0.01),
    "warmup exponential": schedules.warmup_exponential_decay_schedule(0.0, 0.1, 2, 3, 0.5),
}
PROJECTIONS: dict[str, Any] = {
    "box": lambda x: projections.projection_box(x, jax.tree.map(jnp.zeros_like, x), jax.tree.map(jnp.ones_like, x)),
    "cube": lambda x: projections.projection_hypercube(x["w"], 0.5),
    "halfspace": lambda x: projections.projection_halfspace(x, jax.tree.map(jnp.ones_like, x), 0.1),
    "hyperplane": lambda x: projections.projection_hyperplane(x, jax.tree.map(jnp.ones_like, x), 0.1),
    **{n: getattr(projections, f"projection_{n}") for n in "l1_ball l1_sphere l2_ball l2_sphere linf_ball".split()},
    "non_negative": projections.projection_non_negative,
    "simplex": projections.projection_simplex,
}
TREES: dict[str, Any] = {
    **{n: lambda x, n=n: getattr(optax.tree, n)(x, x) for n in "add sub mul div vdot".split()},
    **{n: lambda x, n=n: getattr(optax.tree, n)(x) for n in "sum max min norm size conj real ones_like".split()},
    "add_scale": lambda x: optax.tree.add_scale(x, 0.5, x),
    "clip": lambda x: optax.tree.clip(x, -0.5, 0.5),
    "scale": lambda x: optax.tree.scale(2.0, x),
    "where": lambda x: optax.tree.where(True, x, x),
    "random": lambda x: optax.tree.random_like(jax.random.key(5), x),
    "moment": lambda x: optax.tree.update_moment(x, x, 0.9, 2),
    "bias": lambda x: optax.tree.bias_correction(x, 0.9, 3),
}


def leaves(x: Any) -> list[Any]:
    return [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(x)]


def total_loss(scale: Any) -> Any:
    """The sum of some losses at multiples of their first arguments."""
    names = "hinge_loss huber_loss log_cosh softmax_cross_entropy sparsemax_loss".split()
    return sum(jnp.sum(getattr(losses, k)(scale * LOSSES[k][0], *LOSSES[k][1:])) for k in names)


def curvature() -> list[Any]:
    """Products with Hessians, and their diagonals."""

    def of_batch(params: Any, inputs: Any, targets: Any) -> Any:
        return jnp.mean((inputs @ params - targets) ** 4)

    w, x, y = A[0], A, A[:, 0]
    return leaves([
        second_order.hvp(of_batch, w, w, x, y), second_order.hessian_diag(of_batch, w, x, y),
        second_order.fisher_diag(of_batch, w, x, y), optax.power_iteration(A.T @ A, key=jax.random.key(0))[0],
        optax.matrix_inverse_pth_root(A.T @ A + jnp.eye(3), 2)[0], optax.nnls(A, A[:, 0], 20),
        optax.assignment.hungarian_algorithm(A),
        optax.perturbations.make_perturbed_fun(jnp.sin, 8)(jax.random.key(1), w),
    ])  # fmt: skip


found: dict[str, Any] = {
    "transformations": trained(TRANSFORMATIONS),
    "line searches": trained(LINE_SEARCHES),
    "losses": leaves(jax.jit(lambda: {k: getattr(losses, k)(*args) for k, args in LOSSES.items()})()),
    "gradients": leaves(jax.jit(jax.grad(total_loss))(1.0)),
    "schedules": leaves(jax.jit(jax.vmap(lambda i: {k: f(i) for k, f in SCHEDULES.items()}))(jnp.arange(8))),
    "projections": leaves(jax.jit(lambda x: {k: f(x) for k, f in PROJECTIONS.items()})(START)),
    "trees": leaves(jax.jit(lambda x: {k: f(x) for k, f in TREES.items()})(START)),
    "curvature": curvature(),
}
sys.stdout.write(json.dumps(found))
