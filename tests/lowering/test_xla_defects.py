"""Defects of XLA that our programs avoid: each a minimal module, what it gives, and what is right.

A test here fails when the jaxlib that it meets gives the right value: then this jaxlib has mended the defect. Write its
version into `mended`, and take the guard out once no supported jaxlib is older. The guards: docs/xla_defects.md.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from tapeless.lowering import devices
from tapeless.lowering.array import device_put
from tapeless.lowering.compile import Executable
from tapeless.lowering.xla_workarounds.compat import jaxlib_version, xc
from tapeless.tracer.types import aval_of
from tests.jaxlib_release import RELEASE

AS_USERS_COMPILE = {
    "xla_backend_optimization_level": 3,
    "xla_llvm_disable_expensive_passes": False,
    **({"xla_cpu_use_fusion_emitters": True} if RELEASE < (0, 11) else {}),  # no option from there on
}


class Defect(NamedTuple):
    """A module of one result. wrong: None if it is undefined. mended: the first jaxlib, if any, that is right."""

    module: str
    arguments: Sequence[Any]
    right: Any
    wrong: Any
    options: tuple[tuple[str, Any], ...] = ()
    mended: tuple[int, ...] | None = None


_ROWS = np.arange(120003, dtype=np.float32).reshape(40001, 3) % 7
_WITH_NAN = np.where(np.arange(1000) == np.arange(64)[:, None], np.float32(np.nan), np.float32(5))

DEFECTS = {
    # The algebraic simplifier makes one window of two, at the sum of their starts, and moves that inside. It should
    # move each start inside before: the window of 4 at 6 begins at 4, and element 1 of it is 5.
    "nested_windows": Defect(
        """
        !x = tensor<8xf32>
        !i = tensor<i32>
        module @nested_windows { func.func public @main(%x: !x, %i: !i, %j: !i) -> tensor<1xf32> {
          %0 = stablehlo.dynamic_slice %x, %i, sizes = [4] : (!x, !i) -> tensor<4xf32>
          %1 = stablehlo.dynamic_slice %0, %j, sizes = [1] : (tensor<4xf32>, !i) -> tensor<1xf32>
          return %1 : tensor<1xf32>
        } }""",
        (np.arange(8, dtype=np.float32), np.int32(6), np.int32(1)),
        right=np.float32([5]),
        wrong=np.float32([7]),
        mended=(0, 12, 0),
    ),
    # A gather or scatter of one index vector is made a window first. A scatter that drops what is outside reads, and
    # writes again, the place where that would be if it were moved inside.
    "window_of_a_gather": Defect(
        """
        !x = tensor<8xf32>
        !i = tensor<i32>
        module @window_of_a_gather { func.func public @main(%x: !x, %i: !i, %j: tensor<1xi32>) -> tensor<1xf32> {
          %0 = stablehlo.dynamic_slice %x, %i, sizes = [4] : (!x, !i) -> tensor<4xf32>
          %1 = "stablehlo.gather"(%0, %j) <{
            dimension_numbers = #stablehlo.gather<offset_dims = [0], start_index_map = [0]>,
            slice_sizes = array<i64: 1>
          }> : (tensor<4xf32>, tensor<1xi32>) -> tensor<1xf32>
          return %1 : tensor<1xf32>
        } }""",
        (np.arange(8, dtype=np.float32), np.int32(2), np.int32([9])),
        right=np.float32([5]),
        wrong=np.float32([7]),
        mended=(0, 12, 0),
    ),
    "window_of_a_scatter": Defect(
        """
        !x = tensor<8xf32>
        !w = tensor<4xf32>
        !i = tensor<i32>
        module @window_of_a_scatter { func.func public @main(%x: !x, %i: !i, %j: tensor<1xi32>) -> !w {
          %one = stablehlo.constant dense<1.0> : tensor<1xf32>
          %0 = stablehlo.dynamic_slice %x, %i, sizes = [4] : (!x, !i) -> !w
          %1 = "stablehlo.scatter"(%0, %j, %one) <{
            scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>
          }> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %2 = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %2 : tensor<f32>
          }) : (!w, tensor<1xi32>, tensor<1xf32>) -> !w
          return %1 : !w
        } }""",
        (np.arange(8, dtype=np.float32), np.int32(2), np.int32([9])),
        right=np.float32([2, 3, 4, 5]),
        wrong=np.float32([2, 3, 4, 7]),
        mended=(0, 12, 0),
    ),
    # The same of a window written into a window: x[4:8], with 1 written at 1, goes back to where it was read.
    "nested_updates": Defect(
        """
        !x = tensor<8xf32>
        !w = tensor<4xf32>
        !u = tensor<1xf32>
        !i = tensor<i32>
        module @nested_updates { func.func public @main(%x: !x, %u: !u, %i: !i, %j: !i) -> !x {
          %0 = stablehlo.dynamic_slice %x, %i, sizes = [4] : (!x, !i) -> !w
          %1 = stablehlo.dynamic_update_slice %0, %u, %j : (!w, !u, !i) -> !w
          %2 = stablehlo.dynamic_update_slice %x, %1, %i : (!x, !w, !i) -> !x
          return %2 : !x
        } }""",
        (np.zeros(8, np.float32), np.ones(1, np.float32), np.int32(6), np.int32(1)),
        right=np.float32([0, 0, 0, 0, 0, 1, 0, 0]),
        wrong=np.float32([0, 0, 0, 0, 0, 0, 0, 1]),
        mended=(0, 12, 0),
    ),
    # One element with as much padding before it as after, reduced by windows that are longer than that: taken for a
    # broadcast of the element, as if the window had no padding of its own.
    "window_over_one_padded_element": Defect(
        """
        !x = tensor<1x1xf32>
        !y = tensor<1x3xf32>
        module @cumulative_sum { func.func public @main(%x: !x) -> !y {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.pad %x, %zero, low = [0, 1], high = [0, 1], interior = [0, 0] : (!x, tensor<f32>) -> !y
          %1 = "stablehlo.reduce_window"(%0, %zero) <{
            window_dimensions = array<i64: 1, 3>, padding = dense<[[0, 0], [2, 0]]> : tensor<2x2xi64>
          }> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %2 = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %2 : tensor<f32>
          }) : (!y, tensor<f32>) -> !y
          return %1 : !y
        } }""",
        (np.ones((1, 1), np.float32),),
        right=np.float32([[0, 1, 1]]),
        wrong=np.float32([[1, 1, 1]]),
    ),
    # Negative padding and that of a window are added up, so that what the one cuts off comes back with the other; not
    # without padding between elements, though it be along an axis that has one.
    "window_over_less_than_nothing": Defect(
        """
        !x = tensor<1x3xf32>
        !y = tensor<1x2xf32>
        module @window_over_less_than_nothing { func.func public @main(%x: !x) -> !y {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.pad %x, %zero, low = [0, 0], high = [0, -1], interior = [1, 0] : (!x, tensor<f32>) -> !y
          %1 = "stablehlo.reduce_window"(%0, %zero) <{
            window_dimensions = array<i64: 1, 2>, padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>
          }> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %2 = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %2 : tensor<f32>
          }) : (!y, tensor<f32>) -> !y
          return %1 : !y
        } }""",
        (np.float32([[1, 2, 4]]),),
        right=np.float32([[3, 2]]),
        wrong=np.float32([[3, 6]]),
        mended=(0, 12, 0),
    ),
    # The fusion writes in place what it still reads: that the update reads the array it is written into is not seen if
    # one of them reads it through a reshape.
    "update_from_reshaped_target": Defect(
        """
        !x = tensor<3xf32>
        !y = tensor<3x1xf32>
        !u = tensor<2x1xf32>
        !i = tensor<i32>
        module @update_from_reshaped_target { func.func public @main(%x: !x, %i: !i) -> !y {
          %zero = stablehlo.constant dense<0> : !i
          %one = stablehlo.constant dense<1.0> : !u
          %0 = stablehlo.sine %x : !x
          %1 = stablehlo.reshape %0 : (!x) -> !y
          %2 = stablehlo.slice %1 [0:2, 0:1] : (!y) -> !u
          %3 = stablehlo.add %2, %one : !u
          %4 = stablehlo.dynamic_update_slice %1, %3, %i, %zero : (!y, !u, !i, !i) -> !y
          return %4 : !y
        } }""",
        (np.zeros(3, np.float32), np.int32(1)),
        right=np.float32([[0], [1], [1]]),
        wrong=np.float32([[0], [1], [2]]),
    ),
    # A product with a truth value, made a number, is a choice of the other factor or 0, which nan * 0 is not.
    "product_with_a_mask": Defect(
        """
        !x = tensor<2xf32>
        module @product_with_a_mask { func.func public @main(%x: !x, %p: tensor<2xi1>) -> !x {
          %0 = stablehlo.convert %p : (tensor<2xi1>) -> !x
          %1 = stablehlo.multiply %x, %0 : !x
          return %1 : !x
        } }""",
        (np.float32([np.nan, 2]), np.array([False, True])),
        right=np.float32([np.nan, 2]),
        wrong=np.float32([0, 2]),
    ),
    # Of elements whose index vectors are empty, so that all are written to the same place, only one is.
    "scatter_without_indices": Defect(
        """
        !x = tensor<1xf32>
        !i = tensor<3x0xi32>
        !u = tensor<3xf32>
        module @scatter_without_indices { func.func public @main(%x: !x, %i: !i, %u: !u) -> !x {
          %0 = "stablehlo.scatter"(%x, %i, %u) <{
            scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], index_vector_dim = 1>
          }> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %1 = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %1 : tensor<f32>
          }) : (!x, !i, !u) -> !x
          return %0 : !x
        } }""",
        (np.zeros(1, np.float32), np.zeros((3, 0), np.int32), np.ones(3, np.float32)),
        right=np.float32([3]),
        wrong=np.float32([1]),
        mended=(0, 12, 0),
    ),
    # Of an exponent six bits are looked at.
    "power_of_integers": Defect(
        """
        !x = tensor<2xui8>
        module @power_of_integers { func.func public @main(%x: !x, %y: !x) -> !x {
          %0 = stablehlo.power %x, %y : !x
          return %0 : !x
        } }""",
        (np.uint8([3, 3]), np.uint8([5, 254])),
        right=np.uint8([243, 57]),
        wrong=np.uint8([243, 0]),
        mended=(0, 12, 0),
    ),
    # The sinh of the imaginary part is a difference of exponentials, of which nothing is left.
    "sine_of_complex": Defect(
        """
        !x = tensor<1xcomplex<f32>>
        module @sine_of_complex { func.func public @main(%x: !x) -> !x {
          %0 = stablehlo.sine %x : !x
          return %0 : !x
        } }""",
        (np.complex64([1e-8j]),),
        right=np.complex64([1e-8j]),
        wrong=np.complex64([0]),
    ),
    # Floating point numbers are ordered as integers are: below all of them is the nan whose sign is set.
    "largest_of_nan": Defect(
        """
        !x = tensor<3xf32>
        !k = tensor<1xf32>
        module @largest_of_nan { func.func public @main(%x: !x) -> !k {
          %0:2 = chlo.top_k(%x, k = 1) : !x -> (!k, tensor<1xi32>)
          return %0#0 : !k
        } }""",
        (np.copysign(np.float32([1, np.nan, 2]), np.float32([1, -1, 1])),),
        right=np.float32([np.nan]),
        wrong=np.float32([2]),
    ),
    # The result of a barrier is in the buffer of its operand, and the kernel that reads both writes into it: element 0
    # is written before it is read for element 1. With the default options no barrier is left when kernels are made.
    "beside_a_barrier": Defect(
        """
        !x = tensor<2xf64>
        module @beside_a_barrier { func.func public @main(%x: !x, %c: tensor<2x2xf64>) -> !x {
          %b = stablehlo.dot_general %c, %x, contracting_dims = [1] x [0] : (tensor<2x2xf64>, !x) -> !x
          %o = stablehlo.optimization_barrier %b : !x
          %r = stablehlo.reverse %b, dims = [0] : !x
          %s = stablehlo.add %r, %o : !x
          %t = stablehlo.optimization_barrier %s : !x
          return %t : !x
        } }""",
        (np.array([1.0, 2.0]), np.array([[1.0, 0.0], [0.0, 2.0]])),
        right=np.array([5.0, 5.0]),
        wrong=np.array([5.0, 9.0]),
        options=(("xla_disable_hlo_passes", "cse_barrier_expander"),),
    ),
    # pow(exp(a), b) becomes exp(a * b), and 0 * inf is nan.
    "power_of_exponential": Defect(
        """
        !x = tensor<3xf32>
        module @power_of_exponential { func.func public @main(%a: !x, %b: !x) -> !x {
          %0 = stablehlo.exponential %a : !x
          %1 = stablehlo.power %0, %b : !x
          return %1 : !x
        } }""",
        (np.float32([-np.inf, 0, np.log(2)]), np.float32([0, np.inf, 1])),
        right=np.float32([1, 1, 2]),
        wrong=np.float32([np.nan, np.nan, 2]),
        mended=(0, 11, 2),
    ),
    # log(x ** b) becomes b * log(abs(x)).
    "log_of_power": Defect(
        """
        !x = tensor<2xf32>
        module @log_of_power { func.func public @main(%x: !x, %b: !x) -> !x {
          %0 = stablehlo.power %x, %b : !x
          %1 = stablehlo.log %0 : !x
          return %1 : !x
        } }""",
        (np.float32([-1, 1]), np.float32([0.3, 0.3])),
        right=np.float32([np.nan, 0]),
        wrong=np.float32([0, 0]),
    ),
    # What a number chooses to be nan everywhere is converted to integers, of which LLVM then knows nothing.
    "exponential_of_nan": Defect(
        """
        !x = tensor<4096xf32>
        module @exponential_of_nan { func.func public @main(%x: !x, %p: tensor<i1>) -> !x {
          %n = stablehlo.constant dense<0x7FC00000> : !x
          %0 = stablehlo.select %p, %x, %n : tensor<i1>, !x
          %1 = stablehlo.exponential %0 : !x
          return %1 : !x
        } }""",
        (np.zeros(4096, np.float32), np.array(False)),
        right=np.full(4096, np.nan, np.float32),  # so many that memory is not nan by chance
        wrong=None,
        mended=(0, 11, 2),
    ),
    # x / y becomes x * (1 / y), as y has fewer elements; the reciprocal is rounded to float16.
    "quotient_by_what_is_broadcast": Defect(
        """
        !x = tensor<2xf16>
        module @quotient_by_what_is_broadcast { func.func public @main(%x: !x, %y: tensor<f16>) -> !x {
          %0 = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f16>) -> !x
          %1 = stablehlo.divide %x, %0 : !x
          return %1 : !x
        } }""",
        (np.float16([1e-5, 1]), np.float16(1e-5)),
        right=np.float16([1, np.inf]),
        wrong=np.float16([np.inf, np.inf]),
    ),
    # 1 / (1 + exp(-x)), every step in float16, whose numbers end at 65504.
    "logistic_in_float16": Defect(
        """
        !x = tensor<2xf16>
        module @logistic_in_float16 { func.func public @main(%x: !x) -> !x {
          %0 = stablehlo.logistic %x : !x
          return %0 : !x
        } }""",
        (np.float16([-12, 0]),),
        right=np.float16([1 / (1 + np.exp(12.0)), 0.5]),
        wrong=np.float16([0, 0.5]),
    ),
    # A small loop becomes one kernel, whose conversions round to float16 first: 3.4999998 to 3.5, and that to 4.
    "conversion_in_a_small_loop": Defect(
        """
        !x = tensor<2xf32>
        !y = tensor<2xf4E2M1FN>
        !i = tensor<i32>
        module @conversion_in_a_small_loop { func.func public @main(%x: !x) -> !x {
          %zero = stablehlo.constant dense<0> : !i
          %one = stablehlo.constant dense<1> : !i
          %two = stablehlo.constant dense<2> : !i
          %0:2 = stablehlo.while(%i = %zero, %c = %x) : !i, !x
          cond {
            %p = stablehlo.compare LT, %i, %two : (!i, !i) -> tensor<i1>
            stablehlo.return %p : tensor<i1>
          } do {
            %next = stablehlo.add %i, %one : !i
            %y = stablehlo.convert %c : (!x) -> !y
            %z = stablehlo.convert %y : (!y) -> !x
            stablehlo.return %next, %z : !i, !x
          }
          return %0#1 : !x
        } }""",
        (np.float32([3.4999998, 1]),),
        right=np.float32([3, 1]),
        wrong=np.float32([4, 1]),
    ),
    # The limits of int8 become 6 and -6 in float4, and what is not within is taken for the limits.
    "float4_to_integer": Defect(
        """
        !x = tensor<3xf32>
        module @float4_to_integer { func.func public @main(%x: !x) -> tensor<3xi8> {
          %0 = stablehlo.convert %x : (!x) -> tensor<3xf4E2M1FN>
          %1 = stablehlo.convert %0 : (tensor<3xf4E2M1FN>) -> tensor<3xi8>
          return %1 : tensor<3xi8>
        } }""",
        (np.float32([6, -6, 4]),),
        right=np.int8([6, -6, 4]),
        wrong=np.int8([127, -128, 4]),
    ),
    # A product of a value with itself is taken for positive, as if integers did not wrap: 50000 squared is negative.
    "square_of_integers": Defect(
        """
        !x = tensor<2xi32>
        module @square_of_integers { func.func public @main(%x: !x) -> !x {
          %0 = stablehlo.multiply %x, %x : !x
          %1 = stablehlo.abs %0 : !x
          return %1 : !x
        } }""",
        (np.int32([50000, 3]),),
        right=np.int32([1794967296, 9]),
        wrong=np.int32([-1794967296, 9]),
        mended=(0, 11, 0),
    ),
    # The modulus of the least integer is that integer, and negative.
    "modulus_of_the_least_integer": Defect(
        """
        !x = tensor<2xi32>
        module @modulus_of_the_least_integer { func.func public @main(%x: !x) -> tensor<2xi1> {
          %zero = stablehlo.constant dense<0> : !x
          %0 = stablehlo.abs %x : !x
          %1 = stablehlo.compare LT, %0, %zero : (!x, !x) -> tensor<2xi1>
          return %1 : tensor<2xi1>
        } }""",
        (np.int32([-(2**31), 3]),),
        right=np.array([True, False]),
        wrong=np.array([False, False]),
        mended=(0, 11, 0),
    ),
    # The constant -1 has other bits than the element -1.
    "two_bits_beside_a_constant": Defect(
        """
        !x = tensor<2xi2>
        module @two_bits_beside_a_constant { func.func public @main(%x: !x) -> tensor<2xi1> {
          %c = stablehlo.constant dense<-1> : !x
          %0 = stablehlo.compare EQ, %x, %c : (!x, !x) -> tensor<2xi1>
          return %0 : tensor<2xi1>
        } }""",
        (np.array([-1, 1]).astype(ml_dtypes.int2),),
        right=np.array([True, False]),
        wrong=np.array([False, False]),
    ),
    # Two sums over rows that were cut from a padded array and reversed, the second with a mask, in one kernel. LLVM
    # vectorizes both over the columns, and reads the second operand, masked, at an address that it knows only for the
    # last column: the first row has that alone. The other columns are read from behind the array. On AVX and wider.
    "reversed_rows": Defect(
        """
        !x = tensor<6xf32>
        !y = tensor<2x6xf32>
        !s = tensor<f32>
        module @reversed_rows { func.func public @main(%x: !x) -> !x {
          %zero = stablehlo.constant dense<0.0> : !s
          %zeros = stablehlo.constant dense<0.0> : !y
          %m = stablehlo.constant dense<[
            [true, false, false, false, false, false], [true, true, true, true, true, true]]> : tensor<2x6xi1>
          %0 = stablehlo.pad %x, %zero, low = [5], high = [1], interior = [0] : (!x, !s) -> tensor<12xf32>
          %1 = stablehlo.reshape %0 : (tensor<12xf32>) -> !y
          %2 = stablehlo.reverse %1, dims = [0] : !y
          %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0] : (!y, !s) -> !x
          %4 = stablehlo.pad %x, %zero, low = [1], high = [5], interior = [0] : (!x, !s) -> tensor<12xf32>
          %5 = stablehlo.reshape %4 : (tensor<12xf32>) -> !y
          %6 = stablehlo.reverse %5, dims = [0] : !y
          %7 = stablehlo.select %m, %6, %zeros : tensor<2x6xi1>, !y
          %8 = stablehlo.reduce(%7 init: %zero) applies stablehlo.add across dimensions = [0] : (!y, !s) -> !x
          %9 = stablehlo.multiply %3, %8 : !x
          return %9 : !x
        } }""",
        (np.arange(1, 7, dtype=np.float32),),
        right=np.float32([12, 3, 8, 15, 24, 5]),
        wrong=None,
    ),
    # Products with a small matrix, squared and summed, are given to a library (YNN). It leaves out a part of the rows.
    "sums_of_products": Defect(
        """
        !x = tensor<40001x3xf32>
        !m = tensor<3x3xf32>
        !y = tensor<3x40001xf32>
        module @sums_of_products { func.func public @main(%x: !x, %m: !m) -> tensor<40001xf32> {
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %0 = stablehlo.dot_general %m, %x, contracting_dims = [1] x [1] : (!m, !x) -> !y
          %1 = stablehlo.multiply %0, %0 : !y
          %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0]
            : (!y, tensor<f32>) -> tensor<40001xf32>
          return %2 : tensor<40001xf32>
        } }""",
        (_ROWS, np.eye(3, dtype=np.float32)),
        right=(_ROWS**2).sum(1),
        wrong=None,
        mended=(0, 11, 0),
    ),
    # The same library's maximum of 5 and nan is 5.
    "maximum_of_nan": Defect(
        """
        !x = tensor<64x1000xf32>
        module @maximum_of_nan { func.func public @main(%x: !x) -> tensor<64xf32> {
          %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
          %0 = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
            : (!x, tensor<f32>) -> tensor<64xf32>
          return %0 : tensor<64xf32>
        } }""",
        (_WITH_NAN,),
        right=_WITH_NAN.max(1),
        wrong=None,
    ),
    # It has no dilation of arrays along axes whose windows have one element, and in 0.10.2 along no axis.
    "window_of_one_element": Defect(
        """
        !x = tensor<64x128xf32>
        !y = tensor<32x255xf32>
        module @window_of_one_element { func.func public @main(%x: !x) -> !y {
          %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
          %0 = "stablehlo.reduce_window"(%x, %least) <{
            window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>, base_dilations = array<i64: 1, 2>
          }> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %1 = stablehlo.maximum %a, %b : tensor<f32>
            stablehlo.return %1 : tensor<f32>
          }) : (!x, tensor<f32>) -> !y
          return %0 : !y
        } }""",
        (np.ones((64, 128), np.float32),),
        right=np.where(np.arange(255) % 2, np.float32(-np.inf), np.ones((32, 1), np.float32)),
        wrong=None,
    ),
    # Its numbers of 8 bits have more: 255 + 1 is 256, or 255 at the end.
    "sum_of_bytes": Defect(
        """
        !x = tensor<4096xui8>
        module @sum_of_bytes { func.func public @main(%x: !x, %y: !x) -> tensor<ui8> {
          %most = stablehlo.constant dense<255> : tensor<ui8>
          %0 = stablehlo.add %x, %y : !x
          %1 = stablehlo.reduce(%0 init: %most) applies stablehlo.minimum across dimensions = [0]
            : (!x, tensor<ui8>) -> tensor<ui8>
          return %1 : tensor<ui8>
        } }""",
        (np.full(4096, 200, np.uint8), np.arange(4096).astype(np.uint8)),
        right=np.uint8(0),
        wrong=np.uint8(200),
    ),
}
NAMES = [*DEFECTS]


def computed(defect: Defect) -> np.ndarray[Any, Any]:
    """What XLA makes of a module, with its own options."""
    device = devices.devices("cpu")[0]
    options = xc.CompileOptions()
    options.env_option_overrides = [*AS_USERS_COMPILE.items(), *defect.options]
    loaded = device.client.compile_and_load(defect.module, device.list, options)
    program = Executable(loaded, device, [aval_of(defect.right)], None)
    return np.asarray(program(*[device_put(x, device) for x in defect.arguments])[0])


@pytest.mark.parametrize("name", NAMES)
def test_the_defect_is_there(name, monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    defect = DEFECTS[name]
    found = computed(defect)
    if defect.mended is not None and defect.mended <= RELEASE:
        np.testing.assert_array_equal(found, defect.right)
        return
    if np.array_equal(found, defect.right, equal_nan=True):
        pytest.fail(f"jaxlib {jaxlib_version()} has mended {name!r}: write its version into `mended`.")
    if defect.wrong is not None:
        np.testing.assert_array_equal(found, defect.wrong)
