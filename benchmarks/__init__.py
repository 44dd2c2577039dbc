"""Benchmarks: each module asks one question of Tapeless and of its baseline, JAX, side by side.

    pip install '.[bench]'
    python -m benchmarks              how do whole programs compare, from Python to the last of many calls?
    python -m benchmarks.dispatch     what does one small call cost?
    python -m benchmarks.eager        what does one operation cost without jit?
    python -m benchmarks.importing    what does the import cost?
    python -m benchmarks.steady       how fast are single operations, compiled, and their gradients?
    python -m benchmarks.growth       how do gradients grow with the size of the problem?
    python -m benchmarks.memory       what do memory budgets save, and what do they cost?
    python -m benchmarks.index        do programs by elements run as those in bulk?
    python -m benchmarks.sparse       are sparse derivatives as fast as formulas by hand, in NumPy?

`--control` puts JAX on both sides (numpy, for importing): as far as those ratios are from 1, so far are the others to
be distrusted.
"""
