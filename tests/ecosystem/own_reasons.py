"""Why tests of libraries that pass with JAX do not pass through `as_jax`: by their messages, and by their names."""

from collections.abc import Mapping
from fnmatch import fnmatch
from typing import Final

DEVICES: Final = "for several devices: `pmap`, meshes, shardings"
FITS: Final = "mixes an unsigned array with a negative number, which does not fit: an error here, and JAX wraps it"
WORDS: Final = "an error has other words"
PROGRAMS: Final = "prints a program, or the name of a derivative, which differ: `gradient_of_f` here"
DECIDED: Final = frozenset({DEVICES, FITS})  # by docs/guarantees.md, or what is not there at all

# By what the message contains, for all libraries.
MESSAGES: Final = {
    "pmap: a program runs on one device": DEVICES,
    "jax.sharding.Mesh:": DEVICES,
    "jax.sharding.NamedSharding:": DEVICES,
    "jax.sharding.PartitionSpec:": DEVICES,
    "jax.P:": DEVICES,
    "does not fit uint": FITS,
    "jax.experimental.jax2tf:": "TensorFlow is not called, nor calls Tapeless",
}
# By the library, patterns of names.
NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "chex": {
        "AssertsChexifyTestSuite::test_log_abs_fn": DEVICES,
        "PmapFakeTest": DEVICES,
        "test_assert_tree_is_sharded": DEVICES,
        "test_assert_tree_is_on_": "types have no sharding; arrays have",
        "DevicesAssertTest::test_not_less_than": WORDS,
    },
    "distrax": {},
    "haiku": {
        "haiku/_src/reshape_test.py": "imports jax2tf: TensorFlow is not called, nor calls Tapeless",
        "integration/jax2tf_test.py": "imports jax2tf: TensorFlow is not called, nor calls Tapeless",
        "RankPromotionTest::test_rank_promotion_exception": WORDS,
        "NoFlaxTest::test_inspect_stack_does_not_fail": "passes in a process of its own: it removes imported modules",
        "JaxprInfoTest": PROGRAMS,
        "CustomRNGTest::test_custom_key0": "defines a generator of random numbers by jax.extend.random",
        "StatefulTest::test_*_branch_structure_error": WORDS,
        "StatefulTest::test_vmap_in_axes_different_size": WORDS,
    },
    "optax": {
        "_src/sharding_test.py": DEVICES,
        "utils_test.py::*test_init_unsuccessful_broadcast": WORDS,
    },
}


def reason(library: str, test: str, message: str = "") -> str:
    """Return why a test does not pass with Tapeless; empty if that is not known."""
    by_message = next((why for part, why in MESSAGES.items() if part in message), "")
    return by_message or next((why for name, why in NAMES[library].items() if fnmatch(test, f"*{name}*")), "")
