"""Errors of programs that run out of memory: they name the largest values and their lines."""

import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import place

HUGE = 1 << 22, 1 << 22  # 64 TiB of float32, more than any address space that a process gets


def copies(x):
    return tnp.sin(tnp.broadcast_to(x, HUGE))


def twice(x):
    return tl.lax.scan(lambda c, _: (c + 1, tnp.broadcast_to(c, HUGE)), x, None, 2)[1]


def with_gradient(x):
    return tl.value_and_grad(lambda x: (copies(x)[0, 0], copies(x)), has_aux=True)(x)


@pytest.mark.parametrize("f", [copies, twice, with_gradient])
@pytest.mark.parametrize("ahead", [False, True])
def test_the_largest_values_are_named(f, ahead):
    run = tl.jit(f)
    x = tnp.float32(1)
    if ahead:
        run = run.lower(x).compile()
    with pytest.raises(tl.errors.JaxRuntimeError, match=r"^RESOURCE_EXHAUSTED: Out of memory") as error:
        run(x)
    first, heading, value, *_, advice, _ = str(error.value).splitlines()
    assert first.endswith(" bytes.")
    assert heading.startswith("  The largest values of ") and heading.endswith("not all of which are there at once:")
    assert "float32[4194304,4194304] from " in value and int(value.split()[0].replace(",", "")) % (1 << 46) == 0
    assert (place(copies) if f is not twice else place(twice)).split(" at ")[1].split(":")[0] in value
    assert "tl.frontier(f, *args)" in advice


def test_other_errors_say_nothing_of_memory():
    def fails(x):
        raise ValueError("no")

    run = tl.jit(lambda x: tl.pure_callback(fails, x, x))
    with pytest.raises(Exception, match="no") as error:
        run(tnp.float32(1)).block_until_ready()
    assert "largest values" not in str(error.value)
