"""Integration of differential equations."""
