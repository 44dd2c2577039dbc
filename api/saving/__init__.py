"""Trees of arrays in files: `save` and `load` (`trees`), descriptions of trees (`tree_nodes`), layout and elements."""
