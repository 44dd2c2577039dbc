"""Reports about random numbers: ranges, dtypes, moments, keys under maps and in jit."""

import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax, random
from tests.public_reports.report import Report, f64, i32

SEED = np.uint32(3)
MANY = 4096


def moments(x, powers=(1, 2)):
    return tuple((tnp.asarray(x, "float64") ** k).mean() for k in powers)


def agree(f, g):
    """Whether two draws from one key are the same, element by element."""
    return lambda seed: (f(random.key(seed)) == g(random.key(seed))).all()


def one_by_one(f):
    return lambda keys: tnp.stack([f(k) for k in keys])


def drawn_each(f):
    """Draws by mapped keys are those of each key."""
    return lambda seed: (lambda keys: (tl.vmap(f)(keys) == one_by_one(f)(keys)).all())(
        random.split(random.key(seed), 3)
    )


def is_permutation(seed):
    keys = random.split(random.key(seed), 3)
    drawn = tl.vmap(lambda k: random.permutation(k, 16))(keys)
    return (tnp.sort(drawn, 1) == np.arange(16)).all() & (drawn[0] != drawn[1]).any()


def nothing_reused(seed):
    with tl.debug_key_reuse(True):
        keys = random.split(random.key(seed), 0)
        return tl.vmap(lambda k: (lambda a, b: random.normal(a) + random.normal(b))(*random.split(k)))(keys)


def walked(seed, n):
    """A loop that chooses one of two keys at each step."""

    def step(carry):
        key, i = carry
        a, b = random.split(key)
        return lax.select(i % 2 == 0, a, b), i + 1

    return random.uniform(lax.while_loop(lambda c: c[1] < n, step, (random.key(seed), 0))[0])


def walked_one_by_one(seed):
    n = i32(0, 1, 3)
    return (tl.vmap(lambda n: walked(seed, n))(n) == tnp.stack([walked(seed, k) for k in n])).all()


TRUE = np.array(True)

ROWS = [
    Report(
        "cupy/cupy#7164",
        "numbers of successes are whole, in range, and have their moments",
        lambda seed: (lambda x: ((x == tnp.round(x)).all(), (x >= 0).all(), *moments(x)))(
            random.binomial(random.key(seed), 301, 0.1, (MANY,))
        ),
        (SEED,),
        (TRUE, TRUE, 30.1, 30.1**2 + 27.09),
        mapped=False,
        steps=False,
        rtol=1e-2,  # twice the deviation of the mean of so many
    ),
    Report(
        "jax-ml/jax#5061",
        "a choice in jit is that outside of it",
        agree(
            lambda k: random.categorical(k, tnp.ones((1, 2)), shape=(9, 1)),
            tl.jit(lambda k: random.categorical(k, tnp.ones((1, 2)), shape=(9, 1))),
        ),
        (SEED,),
        TRUE,
    ),
    Report(
        "jax-ml/jax#37859",
        "no key is used twice where there is none",
        nothing_reused,
        (SEED,),
        np.zeros(0, np.float32),
        mapped=False,
    ),
    Report(
        "jax-ml/jax#36562",
        "choices by a key for each row",
        lambda seed: (
            lambda keys, logits: (
                tl.vmap(random.categorical)(keys, logits)
                == tnp.stack([random.categorical(k, x) for k, x in zip(keys, logits)])
            ).all()
        )(random.split(random.key(seed), 3), np.arange(12, dtype=np.float32).reshape(3, 4) % 5),
        (SEED,),
        TRUE,
    ),
    Report("jax-ml/jax#177", "draws by mapped keys", drawn_each(lambda k: random.uniform(k, (4,))), (SEED,), TRUE),
    Report(
        "jax-ml/jax#16422",
        "keys that a mapped loop chooses",
        walked_one_by_one,
        (SEED,),
        TRUE,
        mapped=False,
        steps=False,
    ),
    Report("jax-ml/jax#21663", "permutations by mapped keys", is_permutation, (SEED,), TRUE),
    Report(
        "jmschrei/pomegranate#457",
        "draws have the shape that is asked for",
        lambda seed: i32(*tl.eval_shape(lambda: random.gamma(random.key(seed), f64(1, 2, 3), (4, 3))).shape),
        (SEED,),
        i32(4, 3),
    ),
]
