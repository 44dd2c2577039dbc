"""Workarounds: code that is there because XLA, jaxlib or the process is as it is, without a meaning of its own.

`compat` has what differs between releases of jaxlib. `in_place_loops`, `dataflow` and `barriers` write programs such
that XLA copies no buffer and merges nothing that must stay apart; `memories` and `stored_operands` are for GPUs;
`uninterrupted` and `forking` keep signals and forks out of the compiler. docs/xla_defects.md lists the defects.
"""
