"""Simplification of programs: rewrites of single equations, and passes over whole programs, see `pass_order`.

This file imports nothing: threads that import two of its modules at once would wait for each other.
"""
