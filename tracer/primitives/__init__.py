"""The primitives, one module per family: function, typing rule, Primitive."""
