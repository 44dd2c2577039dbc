"""Rules of the user's own: custom_jvp, custom_vjp, custom_vmap, linear solves, closure conversion."""
