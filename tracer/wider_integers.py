"""Advice on the integer dtype that holds a number which another dtype does not."""


def advice_on_width(value: int, dtype: str) -> str:
    """Write which integer dtype holds `value`, which `dtype` does not."""
    if not -(2**63) <= value < 2**64:
        return "no integer dtype holds it, so use a float"
    if value < 0 and dtype.startswith("uint"):
        return "use a number that is not negative, or an array of a dtype with a sign"
    bits = next((bits for bits in (16, 32, 64) if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)), None)
    name = "uint64" if bits is None else f"int{bits}"
    wider = ', or make 64 bits the default: tl.config.update("default_bits", 64)'
    return f"use an array of a wider dtype, such as {name}{wider if (dtype, name) == ('int32', 'int64') else ''}"
