"""Tests of `tapeless.tracer.distributions`."""
