"""Tests of `tapeless.like_jax`."""
