"""Tests of the algebra of terms, with an evaluator that loops over the box as oracle."""
