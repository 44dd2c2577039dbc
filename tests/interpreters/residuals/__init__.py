"""Tests of `tapeless.interpreters.residuals`."""
