"""Exception types.

    TypeError
      ConcretizationTypeError         a traced value was used where Python needs a number
        TracerBoolConversionError     ... as a truth value (`if x > 0:`)
        TracerIntegerConversionError  ... as an index or a count (`range(n)`)
        TracerArrayConversionError    ... as a NumPy array (`np.asarray(x)`)
        NonConcreteBooleanIndexError  ... as a mask in an index (`x[x > 0]`); also an IndexError
      KeyReuseError                   a random key was used twice, which config.debug_key_reuse looks for
      LinearityError                  a function that must be linear is not; also a NotImplementedError
    ValueError
      AxisError                       an array has no such axis; also an IndexError, as NumPy's
      TypePromotionError              an implicit change of dtypes, which config.numpy_dtype_promotion forbids
      ProgramTextError                the text of a program cannot be read, or is of no well-typed program
    RuntimeError
      UnexpectedTracerError           a traced value outlived the function it was traced in
      InternalError                   a broken invariant of ours

Everything else is a standard TypeError, ValueError, IndexError, OverflowError, FloatingPointError or
NotImplementedError. The names of traced values are JAX's, as are JAXTypeError and JAXIndexError, which are above them.
"""

from typing import Any, Final

# Advice on the integer dtype that holds a number which another dtype does not.


def advice_on_width(value: int, dtype: str) -> str:
    """Write which integer dtype, unlike `dtype`, holds `value`."""
    if not -(2**63) <= value < 2**64:
        return "no integer dtype holds it, so use a float"
    if value < 0 and dtype.startswith("uint"):
        return "use a number that is not negative, or an array of a dtype with a sign"
    bits = next((bits for bits in (16, 32, 64) if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)), None)
    name = "uint64" if bits is None else f"int{bits}"
    wider = ', or make 64 bits the default: tl.config.update("default_bits", 64)'
    return f"use an array of a wider dtype, such as {name}{wider if (dtype, name) == ('int32', 'int64') else ''}"


class JAXTypeError(TypeError):
    """A TypeError about traced values, by JAX's name."""


class JAXIndexError(IndexError):
    """An IndexError about traced values, by JAX's name."""


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where Python needs a concrete one."""


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value was used as a truth value."""


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced value was used as a Python integer."""


class TracerArrayConversionError(ConcretizationTypeError):
    """A traced value was converted to a NumPy array."""


class NonConcreteBooleanIndexError(ConcretizationTypeError, JAXIndexError):
    """A traced mask was used as an index: the shape of the result is not known."""


class KeyReuseError(JAXTypeError):
    """A random key was used twice: only with `config.debug_key_reuse`."""


class LinearityError(TypeError, NotImplementedError):
    """A program that must be linear is not: `reason` says why, in a few words, `equation` where, if it is known.

    Also a NotImplementedError: nonlinear equations cannot be transposed.
    """

    def __init__(self, message: str, reason: str, equation: Any = None) -> None:
        super().__init__(message)
        self.reason: Final = reason
        self.equation: Final = equation

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy to another process without the equation, whose functions may exist in this one only."""
        return LinearityError, (str(self), self.reason)


class AxisError(ValueError, IndexError):
    """An array has no such axis. NumPy's is both, and the array API standard asks for an IndexError in places."""


class TypePromotionError(ValueError):
    """Operands have several dtypes, and `config.numpy_dtype_promotion` is "strict"."""


class ProgramTextError(ValueError):
    """The text of a program cannot be read, or the program is not well typed, at this line and column, from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line: int = line
        self.column: int = column

    def __reduce__(self) -> tuple[Any, ...]:
        return ProgramTextError, (str(self), self.line, self.column)


class UnexpectedTracerError(RuntimeError):
    """A traced value was used after the function it belongs to had returned."""


class InternalError(RuntimeError):
    """An invariant of Tapeless is broken: not the user's fault."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}\n  This is a bug in Tapeless, please report it.")

    def __reduce__(self) -> tuple[Any, ...]:
        return _internal_error, self.args


def _internal_error(message: str) -> InternalError:
    """Make an error of its whole message."""
    return InternalError.__new__(InternalError, message)


for _type in [x for x in [*globals().values()] if isinstance(x, type) and issubclass(x, Exception)]:
    _type.__module__ = "tapeless.errors"  # where users import it from: tracebacks print it


def not_supported(who: str, keyword: str, value: Any) -> NotImplementedError:
    """Make the error for a keyword argument whose only supported value is None."""
    return NotImplementedError(f"{who}: {keyword}={value!r} is not supported, only None.")


def hidden_by_numpy(error: Exception) -> Exception | None:
    """Return our error about a traced value that NumPy hid ("setting an array element with a sequence"), or None."""
    hidden = error.__cause__
    if type(error) is ValueError and isinstance(hidden, (ConcretizationTypeError, UnexpectedTracerError)):
        return hidden.with_traceback(error.__traceback__)
    return None
