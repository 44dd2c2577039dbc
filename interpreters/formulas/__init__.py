"""Programs as formulas: sums of terms over inputs, with a definition for each value that is not a sum of terms."""
