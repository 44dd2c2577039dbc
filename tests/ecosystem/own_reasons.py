"""Why tests of libraries that pass with JAX do not pass through `as_jax`: by library, patterns of their names."""

from typing import Final

DEVICES: Final = "for several devices: `pmap`, meshes, shardings"
WORDS: Final = "an error has other words"

REASONS: Final[dict[str, dict[str, str]]] = {
    "chex": {
        "AssertsChexifyTestSuite::test_log_abs_fn": DEVICES,
        "PmapFakeTest": DEVICES,
        "test_assert_tree_is_sharded": DEVICES,
        "test_assert_tree_is_on_": "types have no sharding; arrays have",
        "DevicesAssertTest::test_not_less_than": WORDS,
    },
    "distrax": {},
    "haiku": {},
    "optax": {},
}
