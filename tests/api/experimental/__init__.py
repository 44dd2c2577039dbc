"""Tests of what `tapeless.experimental` names."""
