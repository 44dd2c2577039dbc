"""Tests of `tapeless.interpreters.terms`."""
