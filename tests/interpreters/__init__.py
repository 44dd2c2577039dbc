"""Tests of interpreters/."""
