"""Programs as formulas: sums of terms over inputs, with a definition for each value that is no such sum."""
