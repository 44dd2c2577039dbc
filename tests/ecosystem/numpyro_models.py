"""Models of numpyro: NUTS of a regression and of a hierarchy, variational inference, predictions, distributions."""

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.infer import HMC, MCMC, NUTS, SVI, Predictive, Trace_ELBO, log_likelihood
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(20, 2)).astype(np.float32))
Y = X @ jnp.array([1.0, -0.5]) + 0.3 * jnp.asarray(RNG.normal(size=20).astype(np.float32))
GROUPS = jnp.asarray(RNG.integers(0, 3, 20).astype(np.int32))


def regression(x: Any, y: Any = None) -> None:
    w = numpyro.sample("w", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(x @ w, sigma), obs=y)


def hierarchy(y: Any) -> None:
    center = numpyro.sample("center", dist.Cauchy(0.0, 1.0))
    with (
        numpyro.plate("groups", 3),
        numpyro.handlers.reparam(config={"mean": numpyro.infer.reparam.LocScaleReparam(0)}),
    ):
        mean = numpyro.sample("mean", dist.Normal(center, 0.5))
    numpyro.sample("y", dist.StudentT(4.0, mean[GROUPS], 1.0), obs=y)


def listed(tree: Any) -> Any:
    return {name: np.asarray(x).tolist() for name, x in tree.items()}


found: dict[str, Any] = {}
KERNELS: dict[str, Any] = {
    "nuts": (NUTS(regression, step_size=0.1, adapt_step_size=False), (X, Y)),
    "hmc": (HMC(regression, step_size=0.05, num_steps=4, adapt_step_size=False), (X, Y)),
    "hierarchy": (NUTS(hierarchy, step_size=0.1, adapt_step_size=False, dense_mass=True), (Y,)),
}
for name, (kernel, args) in KERNELS.items():
    mcmc = MCMC(kernel, num_warmup=2, num_samples=4, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0), *args)
    found[name] = listed(mcmc.get_samples())
samples = {"w": jnp.ones((3, 2)), "sigma": jnp.full(3, 0.5)}
found["predictive"] = listed(Predictive(regression, samples)(jax.random.PRNGKey(1), X[:4]))
found["likelihood"] = listed(log_likelihood(regression, samples, X, Y))
GUIDES: dict[str, Any] = {"mean field": AutoNormal(regression), "full covariance": AutoMultivariateNormal(regression)}
OPTIMIZERS: dict[str, Any] = {"mean field": numpyro.optim.Adam(0.05), "full covariance": optax.adam(0.05)}
for name, guide in GUIDES.items():
    svi = SVI(regression, guide, OPTIMIZERS[name], Trace_ELBO())
    result = svi.run(jax.random.PRNGKey(2), 5, X, Y, progress_bar=False)
    found[name] = {"losses": np.asarray(result.losses).tolist(), **listed(result.params)}
DISTRIBUTIONS: dict[str, Any] = {
    "beta": (dist.Beta(2.0, 3.0), 0.4),
    "gamma": (dist.Gamma(2.0, 3.0), 0.4),
    "dirichlet": (dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])), jnp.array([0.2, 0.3, 0.5])),
    "normal": (dist.MultivariateNormal(jnp.zeros(2), jnp.array([[2.0, 0.5], [0.5, 1.0]])), jnp.array([0.3, 0.1])),
    "categorical": (dist.Categorical(logits=jnp.array([0.1, 0.5, -1.0])), 1),
    "poisson": (dist.Poisson(3.0), 2),
    "binomial": (dist.Binomial(10, 0.3), 4),
    "lkj": (dist.LKJCholesky(3, 2.0), jnp.eye(3)),
    "truncated": (dist.TruncatedNormal(0.0, 1.0, low=-1.0, high=2.0), 0.5),
    "mixture": (
        dist.MixtureSameFamily(dist.Categorical(jnp.array([0.3, 0.7])), dist.Normal(jnp.array([0.0, 1.0]), 1.0)),
        0.5,
    ),
    "von mises": (dist.VonMises(0.1, 2.0), 0.5),
    "negative binomial": (dist.NegativeBinomial2(3.0, 2.0), 4),
}
for name, (distribution, value) in DISTRIBUTIONS.items():
    drawn = distribution.sample(jax.random.PRNGKey(3), (2,))
    found[name] = {"density": float(distribution.log_prob(value)), "drawn": np.asarray(drawn).tolist()}
sys.stdout.write(json.dumps(found))
