"""Formulas: sums of terms as text, LaTeX, products of matrices and source for NumPy; symmetries that merge terms."""
