"""Tests of tracer/primitives/."""
