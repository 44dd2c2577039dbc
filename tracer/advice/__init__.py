"""Advice in errors: names that were meant, keywords of other libraries, functions not called, wider dtypes.

Nothing here is needed before an error is raised. Begin with `missing_names`, which answers for a name missing from a
namespace; `keyword_advice` does so for a keyword, and `widths` for operands of two widths.
"""
