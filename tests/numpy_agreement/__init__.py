"""Every function of `tapeless.numpy` against NumPy: tables of calls, and what is compared of their results.

`tests/test_numpy_agreement.py` runs them; `python -m tests.numpy_agreement` runs more of each, and compiles all of them
with the options that users compile with.
"""
