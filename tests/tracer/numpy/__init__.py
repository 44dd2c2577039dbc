"""Tests of tracer/numpy/."""
