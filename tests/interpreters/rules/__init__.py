"""Tests of interpreters/rules/."""
