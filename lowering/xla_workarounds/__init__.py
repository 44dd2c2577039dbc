"""Workarounds: code that is there because XLA, jaxlib or the process is as it is, without a meaning of its own.

`compat` has what differs between releases of jaxlib. `in_place_loops` and `dataflow` write programs such that XLA
copies no buffer; `memories` is for GPUs; `uninterrupted` and `forking` keep signals and forks out of the compiler.
docs/xla_defects.md lists the defects. Two workarounds are where the operation is written: barriers in
rules/checkpoint.py, operands of matrix products on GPUs in emit.py.
"""
