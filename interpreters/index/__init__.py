"""Bodies of the index language as programs: reads become slices, sums of products contractions.

Begin with `bodies`, which runs a body over indices; `brackets` writes its conditions, `entries` and the two beside it
the elements of sparse arrays. `normal_forms` has the passes of `tapeless.index`, each with the form that it reaches.
"""
