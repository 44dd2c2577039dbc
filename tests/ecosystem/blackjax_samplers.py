"""Samples of a regression's posterior by blackjax's samplers, the same as JAX's for the same keys."""

import json
import sys
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import optax

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(20, 2)).astype(np.float32))
Y = X @ jnp.array([1.0, -0.5]) + 0.3 * jnp.asarray(RNG.normal(size=20).astype(np.float32))
START = {"w": jnp.zeros(2), "log_sigma": jnp.array(0.0)}


def logdensity(params: Any) -> Any:
    noise = jnp.exp(params["log_sigma"])
    likelihood = jax.scipy.stats.norm.logpdf(Y, X @ params["w"], noise).sum()
    return likelihood + jax.scipy.stats.norm.logpdf(params["w"]).sum() - params["log_sigma"] ** 2


def sampled(sampler: Any, key: Any, steps: int = 6) -> Any:
    """Some positions in a row."""
    state = sampler.init(START)

    @jax.jit
    def run(state: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            state, _ = sampler.step(key, state)
            return state, state.position

        return jax.lax.scan(step, state, jax.random.split(key, steps))[1]

    return {name: np.asarray(x).tolist() for name, x in run(state).items()}


mass = jnp.ones(3)
SAMPLERS: dict[str, Any] = {
    "nuts": blackjax.nuts(logdensity, 0.1, mass),
    "hmc": blackjax.hmc(logdensity, 0.1, mass, 5),
    "mala": blackjax.mala(logdensity, 0.01),
    "random walk": blackjax.additive_step_random_walk(logdensity, blackjax.mcmc.random_walk.normal(0.1 * mass)),
}
found: dict[str, Any] = {}
for name, sampler in SAMPLERS.items():
    found[name] = sampled(sampler, jax.random.key(1))
warmup = blackjax.window_adaptation(blackjax.nuts, logdensity)
(state, parameters), _ = warmup.run(jax.random.key(2), START, num_steps=8)
found["warmup"] = {"step size": float(parameters["step_size"]), "position": np.asarray(state.position["w"]).tolist()}
smc = blackjax.tempered_smc(
    lambda x: jax.scipy.stats.norm.logpdf(x["w"]).sum(),
    logdensity,
    blackjax.hmc.build_kernel(),
    blackjax.hmc.init,
    {
        "step_size": jnp.full((1,), 0.05),
        "inverse_mass_matrix": jnp.ones((1, 3)),
        "num_integration_steps": jnp.full((1,), 2),
    },
    blackjax.smc.resampling.systematic,
    num_mcmc_steps=2,
)
particles = {"w": jax.random.normal(jax.random.key(3), (8, 2)), "log_sigma": jnp.zeros(8)}
state, _ = jax.jit(smc.step)(jax.random.key(4), smc.init(particles), 0.5)
found["smc"] = np.asarray(state.particles["w"]).tolist()
approximation = blackjax.meanfield_vi(logdensity, optax.sgd(0.01), 10)
vi_state = approximation.init(START)
for key in jax.random.split(jax.random.key(5), 3):
    vi_state, info = approximation.step(key, vi_state)
found["variational"] = {"elbo": float(info.elbo), "mean": np.asarray(vi_state.mu["w"]).tolist()}
ellipse = blackjax.elliptical_slice(
    lambda x: jax.scipy.stats.norm.logpdf(x, 1.0).sum(), mean=jnp.zeros(2), cov=jnp.eye(2)
)
state = ellipse.init(jnp.zeros(2))
for key in jax.random.split(jax.random.key(6), 3):
    state, _ = ellipse.step(key, state)
found["slice"] = np.asarray(state.position).tolist()
sys.stdout.write(json.dumps(found))
