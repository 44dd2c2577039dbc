"""Functions of matrices that are written with loops: names of `scipy.linalg`."""
