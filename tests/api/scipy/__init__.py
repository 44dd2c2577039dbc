"""Tests of the namespaces of `tapeless.scipy`."""
