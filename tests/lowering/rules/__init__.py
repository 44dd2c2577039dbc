"""Tests of lowering/rules/."""
