"""Tests of `tapeless.arguments`."""
