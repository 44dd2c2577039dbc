"""Batching: vmap, and collectives over its named axes."""
