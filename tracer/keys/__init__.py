"""Keys of random numbers: arrays of keys (`prng_keys`, where to begin), how their words make bits, keys used twice."""
