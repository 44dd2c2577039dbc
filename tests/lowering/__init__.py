"""Tests of lowering/."""
