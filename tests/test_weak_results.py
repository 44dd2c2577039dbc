"""Results of weakly typed operands are weak where JAX's are, but for a table of differences with their reasons.

A weak result takes the dtype of an array that it meets. JAX's answers are in weak_results.json.
"""

import fnmatch
import warnings
from collections.abc import Iterator

import pytest

import tapeless as tl
from tests import weak_results
from tests.settings import restored_settings
from tests.typed_steps import by_types

REASONS = {
    "results of weak operands are weak, where a constant inside makes JAX's strong: no number widens an array": """
        lax.random_gamma_grad lax.conv_general_dilated_patches lax.conv_general_dilated_local lax.dynamic_update_*
        lax.pmax lax.pmin numpy.deg2rad numpy.degrees numpy.rad2deg numpy.radians numpy.log10 numpy.log2 numpy.sinc
        numpy.nan_to_num numpy.hypot numpy.logaddexp2 numpy.heaviside numpy.cross numpy.vander numpy.around numpy.gcd
        numpy.lcm numpy.diagflat numpy.polydiv numpy.linalg.diagonal numpy.linalg.cross numpy.linalg.pinv
        numpy.linalg.lstsq scipy.linalg.* scipy.special.* scipy.stats.*""",
    "positions and codes are integers of 32 bits, whatever they are positions of": """
        lax.top_k lax.approx_m* lax.linalg.lu lax.linalg.lu_pivots_to_permutation scipy.linalg.lu_factor
        numpy.argpartition scipy.sparse.linalg.gmres scipy.optimize.minimize""",
    "it has the dtype that is asked for, float32": "nn.scaled_dot_general",
}
PATTERNS = [pattern for names in REASONS.values() for pattern in names.split()]


@pytest.fixture(autouse=True)
def _only_traced() -> Iterator[None]:
    with restored_settings(), by_types(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tl.config.numpy_bits = 32
        yield


def test_results_are_weak_where_they_are_in_jax() -> None:
    ours, texts, used = weak_results.ours(), dict(weak_results.calls()), set[str]()
    wrong: list[str] = []
    for variant, answers in weak_results.read().items():
        for i, (name, theirs) in enumerate(answers.items()):
            text = texts[f"tapeless.{name}"]
            found = weak_results.types(ours, text, variant)
            if i % 3 == 0 and weak_results.types(ours, text, variant, eager=True) not in (found, ""):
                wrong.append(f"{name}, {variant}: eagerly other than {found}")
            if found != theirs:
                reasons = {pattern for pattern in PATTERNS if fnmatch.fnmatch(name, pattern)}
                used |= reasons
                if not reasons or found.replace("~", "") != theirs.replace("~", ""):
                    wrong.append(f"{name}, {variant}: {found or 'refused'}, JAX {theirs}")
    assert wrong == []
    assert used == {*PATTERNS}, "a difference is no more"


def test_numbers_widen_no_array() -> None:
    half, x = tl.numpy.ones(2, "bfloat16"), tl.numpy.full((2, 2), 2.0)
    for f in (tl.numpy.linalg.cholesky, tl.numpy.linalg.svdvals, tl.numpy.log2, tl.scipy.stats.norm.cdf):
        assert (f(x) * half).dtype == "bfloat16"
    assert (tl.numpy.linalg.norm(x) * half).dtype == (tl.numpy.sum(x) * half).dtype == "float32"
