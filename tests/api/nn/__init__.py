"""Tests of `tapeless.nn`."""
