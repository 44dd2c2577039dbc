"""Why names of JAX and NumPy are not in Tapeless: namespace -> reason -> names. docs/make_coverage.py prints them."""

from collections.abc import Mapping

_DEVICES = "for several devices, which are not supported yet"
_PROCESSES = "for several processes, which are not supported yet"

OTHER_MEANINGS = {("tapeless", "memory")}  # names of other things there, as of a module

REASONS: Mapping[str, Mapping[str, str]] = {
    "jax": {
        _DEVICES: (
            "NamedSharding P Shard auto_pcast make_array_from_callback make_array_from_single_device_arrays make_mesh "
            "memory remove_size_one_mesh_axis_from_type reshard set_mesh shard_map smap"
        ),
        _PROCESSES: "make_array_from_process_local_data thread_guard",
        "there is no conversion to TensorFlow": "jax2tf_associative_scan_reductions",
    },
    "jax.numpy": {
        "StableHLO's integers of 1 bit are booleans: JAX's `zeros(3, int1) + 1` is `[True True True]`": "int1 uint1",
        "jaxlib 0.10.2 has no code for it on the CPU: `Invalid XLA PrimitiveType: 36 (F6E2M3FN)`": (
            "float6_e2m3fn float6_e3m2fn"
        ),
    },
    "jax.lax": {
        _DEVICES: (
            "pbroadcast pcast precv psend ragged_all_to_all ragged_all_to_all_p sharding_constraint_p "
            "with_sharding_constraint"
        ),
        "it has no seed, and cannot be repeated": "rng_uniform rng_uniform_p",
        "XLA does not say whether it honours it on the CPU": "AccuracyMode Tolerance",
        "there are no tokens: the program orders effects": ("after_all after_all_p create_token create_token_p"),
        "its params are programs, whose equations differ here": "linear_solve_p select_and_scatter_p",
    },
    "jax.errors": {
        "there are no symbolic dimensions yet": "InconclusiveDimensionOperation",
        "nothing raises it": "JaxprTypeError",
    },
    "jax.core": {
        "internal to JAX": "ParamDict Value eval_context",
        "there are no symbolic dimensions yet": "max_dim min_dim",
    },
    "jax.debug": {
        _DEVICES: "inspect_array_sharding visualize_array_sharding visualize_sharding",
        "effects have the names of their primitives": "DebugEffect OrderedDebugEffect",
    },
    "jax.custom_derivatives": {"internal to JAX": "custom_vjp_call_p remat_opt_p"},
    "jax.ad_checkpoint": {"a policy returns true, false, or a memory": "Offloadable Recompute Saveable"},
    "numpy": {
        "arrays cannot be changed": "copyto putmask",
        "it is about the memory of arrays, whose layout is XLA's": (
            "ascontiguousarray asfortranarray isfortran flatiter may_share_memory memmap nditer nested_iters require "
            "shares_memory"
        ),
        "an iterator over Python's numbers: iterate over `np.asarray(x)`": "broadcast ndenumerate ndindex",
        "there are no arrays of texts, bytes, records and objects": "bytes_ recarray record str_ void",
        "there are no arrays of dates": (
            "busday_count busday_offset busdaycalendar datetime64 datetime_as_string datetime_data is_busday isnat "
            "timedelta64"
        ),
        "a class of arrays that NumPy itself discourages": "asmatrix bmat matrix poly1d",
        "XLA has no numbers of this width": "clongdouble complex256 float128 longdouble",
        "a C type, whose width differs between platforms: write the width": (
            "byte intc intp long longlong short ubyte uintc uintp ulong ulonglong ushort"
        ),
        "text files: read and write them with NumPy": "fromregex genfromtxt loadtxt savetxt",
        "it formats numbers: use NumPy's on `np.asarray(x)`": (
            "base_repr binary_repr format_float_positional format_float_scientific"
        ),
        "settings of NumPy": "errstate geterr geterrcall getbufsize seterr seterrcall setbufsize",
        "about NumPy itself": "get_include info show_config show_runtime test",
        "a table of NumPy's dtypes": "ScalarType sctypeDict typecodes typename little_endian",
        "its dtype depends on values": "common_type min_scalar_type mintypecode real_if_close",
        "it checks values, which under jit are not known": "asarray_chkfinite",
        "there are no subclasses of arrays": "asanyarray",
        "Python has them": "False_ True_",
        "use `vstack`": "row_stack",
        "use `savez`": "savez_compressed",
        "use `array_str` and `array_repr`": "array2string",
    },
    "array_api_strict": {
        "about array_api_strict itself, not of the standard": (
            "ArrayAPIStrictFlags Device get_array_api_strict_flags reset_array_api_strict_flags "
            "set_array_api_strict_flags"
        ),
    },
}
