"""The NumPy namespace, written over the primitives."""
