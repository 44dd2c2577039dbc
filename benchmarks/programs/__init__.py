"""Whole programs by subject, each written once for both libraries. `python -m benchmarks` compares them."""

from benchmarks.programs import classical, networks, physics, statistics

PROGRAMS = classical.PROGRAMS | networks.PROGRAMS | physics.PROGRAMS | statistics.PROGRAMS
