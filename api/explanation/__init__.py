"""The pages and texts of tl.explain."""
