"""Tests of tracer/."""
