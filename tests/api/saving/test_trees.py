"""Trees of arrays in files: what comes back, what other readers see, and what is refused."""

import dataclasses
import json
import os
import subprocess
import sys
import zlib
from collections import OrderedDict, UserDict, defaultdict, deque
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.saving import safetensors_layout
from tapeless.saving.trees import checksum_of_text
from tapeless.tracer import dtypes
from tests.messages import raises

pytestmark = pytest.mark.usefixtures("eager_by_steps")

DTYPES = [name for name, dtype in dtypes._BY_NAME.items() if dtypes.kind(dtype) in "biufc"]


class Point(NamedTuple):
    x: Any
    y: Any


@tl.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    """Weights, and a name that is no leaf."""

    w: Any
    name: str = dataclasses.field(default="", metadata={"static": True})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tree.safetensors"


def same(x: Any, y: Any) -> bool:
    """Equal to the bit, in type, weakness and structure."""
    return tl.tree.structure(x) == tl.tree.structure(y) and all(map(_same_leaf, tl.tree.leaves(x), tl.tree.leaves(y)))


def _same_leaf(x: Any, y: Any) -> bool:
    if not isinstance(y, (tl.Array, np.ndarray)):
        return type(x) is type(y) and repr(x) == repr(y)
    weak = [getattr(getattr(each, "aval", None), "weak_type", False) for each in (x, y)]
    return (x.shape, x.dtype, weak[0]) == (y.shape, y.dtype, weak[1]) and _bits(x) == _bits(y)


def _bits(x: Any) -> bytes:
    return np.asarray(tl.random.key_data(x) if tnp.issubdtype(x.dtype, tl.dtypes.prng_key) else x).tobytes()


# ---- what comes back


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_every_dtype(path, shape):
    rng = np.random.default_rng(0)
    tree = {name: tnp.asarray(rng.integers(0, 2, shape).astype(dtypes.canonical(name))) for name in DTYPES}
    tl.save(path, tree)
    assert same(tl.load(path), tree)
    mapped = tl.load(path, mmap=True)
    assert all(type(x) is np.ndarray and x.dtype == tree[name].dtype for name, x in mapped.items())
    assert all(_bits(x) == _bits(tree[name]) for name, x in mapped.items())


@pytest.mark.parametrize("name", "int2 int4 uint2 uint4 int8 float4_e2m1fn float8_e4m3b11fnuz bfloat16 float16".split())
def test_every_value(path, name):
    """Signs of zeros and of nan, negative numbers of two bits, subnormals: as many bit patterns as there are."""
    dtype = dtypes.canonical(name)
    patterns = np.arange(2 ** dtypes.bits_of(dtype), dtype=np.uint16 if dtype.itemsize == 2 else np.uint8)
    values = patterns.view(dtype)
    if dtypes.is_integer(dtype):
        values = patterns.view(np.int8).astype(dtype) if name != "int8" else values
    tl.save(path, values)
    assert np.asarray(tl.load(path)).tobytes() == values.tobytes()


def test_numbers_of_nan_and_wide_numbers_keep_their_bits(path):
    odd = np.array([0x7FF8000000000123, 0xFFF0000000000001, 1 << 63], np.uint64).view(np.float64)
    with tl.config.scope(numpy_bits=32):
        tl.save(path, [odd, odd[0], odd.astype(">f8"), odd[::-1]])
        found = tl.load(path)
    assert [np.asarray(x).tobytes() for x in found[:2]] == [odd.tobytes(), odd[:1].tobytes()]
    assert found[2].dtype == np.float64 and found[3].shape == (3,)
    assert np.asarray(found[3]).tobytes() == odd[::-1].tobytes()


def test_keys_weak_types_and_scalars(path):
    keys = tl.random.split(tl.random.key(7), (2, 3))
    weak = tl.jit(lambda x: 2 * x)(1.5)
    scalars = [True, 3, -(2**200), 2**53, 1.5, -0.0, float("nan"), float("-inf"), 1 - 2j, "tëxt\n\ud800", None]
    tree = {"keys": keys, "one": keys[0, 0], "none": keys[:0], "weak": weak, "scalars": scalars}
    tl.save(path, tree)
    assert same(tl.load(path), tree)
    assert isinstance(tl.load(path, mmap=True)["keys"], tl.Array)
    assert tl.random.bits(tl.load(path)["one"]) == tl.random.bits(keys[0, 0])


X = np.arange(3.0, dtype=np.float32)


@pytest.mark.parametrize(
    "tree",
    [
        X, None, (), [], {}, 5, (X, [X, None], ()), {1: X, 2: X}, {True: X}, {1.5: X}, {"a.b": X, "a": {"b": X}},
        OrderedDict(b=X, a=X), deque([X, X], maxlen=3), deque([X]), {"__metadata__": X, "": X, "array": X}, [X] * 2,
    ],
)  # fmt: skip
def test_containers(path, tree):
    tl.save(path, tree)
    found = tl.load(path)
    assert same(found, tree) and type(found) in (type(tree), type(tnp.ones(1)))
    assert same(tl.load(path, like=tree), tree)


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text())
TREES = st.recursive(
    LEAVES | st.sampled_from([tnp.arange(3), tnp.ones((2, 0)), tl.random.key(1)]),
    lambda t: st.lists(t) | st.lists(t).map(tuple) | st.dictionaries(st.text(), t) | st.dictionaries(st.integers(), t),
    max_leaves=12,
)


@settings(deadline=None, max_examples=60)
@given(TREES)
def test_any_tree(tmp_path_factory, tree):
    path = tmp_path_factory.getbasetemp() / f"any-{os.getpid()}"
    tl.save(path, tree)
    assert same(tl.load(path), tree) and same(tl.load(path, like=tree), tree)


def test_deep_trees(path):
    tree: Any = tnp.arange(2)
    for _ in range(3000):
        tree = [tree]
    tl.save(path, tree)
    found = tl.load(path)
    assert tl.tree.leaves(found)[0].tolist() == [0, 1] and tl.tree.structure(found) == tl.tree.structure(tree)


def test_classes_come_back_by_like(path):
    tree = {"layer": Layer(X, "first"), "point": Point(1, X), "count": defaultdict(list, a=X), "step": 3}
    tl.save(path, tree)
    zeros = tl.tree.map(lambda x: tl.ShapeDtypeStruct(x.shape, x.dtype) if isinstance(x, np.ndarray) else 0, tree)
    zeros["layer"].name = "second"
    found = tl.load(path, like=zeros)
    assert found["layer"].name == "second" and type(found["count"]) is defaultdict
    assert same((found["layer"].w, found["point"], found["step"]), (tnp.asarray(X), Point(1, tnp.asarray(X)), 3))
    message = (
        f"load: {path} holds a defaultdict of module collections, and files do not say how to make one.\n"
        "  Give a tree that has one: load(path, like=tree)."
    )
    with raises(ValueError, message):
        tl.load(path)


def test_the_path_comes_first(path):
    for first, name in (({"w": X}, "a dict"), (OrderedDict(), "an OrderedDict"), (3, "an int")):
        with raises(TypeError, f"save: the path comes first, save(path, tree): {name} is no path."):
            tl.save(first, path)  # pyright: ignore[reportArgumentType]  # which is the test


def test_states_of_optimizers_come_back_by_like(path):
    optimizer = tl.optimizers.chain(tl.optimizers.clip(1.0), tl.optimizers.adam(1e-2))
    params = {"w": tnp.ones(3)}
    _, state = optimizer.update(params, optimizer.init(params), params)
    tl.save(path, state)
    assert same(tl.load(path, like=optimizer.init(params)), state)
    with pytest.raises(ValueError, match="holds an EmptyState of module "):
        tl.load(path)


def test_what_is_mapped_is_read_only_and_outlives_the_file(path):
    tl.save(path, {"w": tnp.arange(4.0), "c": tnp.ones(3, complex)})
    mapped = tl.load(path, mmap=True)
    assert not mapped["w"].flags.writeable and not mapped["c"].flags.owndata and mapped["w"].ctypes.data % 8 == 0
    tl.save(path, {"w": tnp.zeros(4)})
    path.unlink()
    assert mapped["w"].tolist() == [0.0, 1.0, 2.0, 3.0] and tnp.sum(mapped["w"]) == 6


def test_loading_while_tracing_and_under_guards(path):
    tl.save(path, X)
    assert tl.jit(lambda y: y + tl.load(path))(X).tolist() == [0.0, 2.0, 4.0]
    with tl.transfer_guard("disallow"):
        assert tl.load(path).shape == (3,)


# ---- other readers


def test_safetensors_reads_the_file(path):
    safetensors = pytest.importorskip("safetensors")
    tree = {name: tnp.asarray(np.ones((2, 3)).astype(dtypes.canonical(name))) for name in DTYPES}
    tl.save(path, {**tree, "key": tl.random.key(0), "step": 5})
    read = dict(safetensors.deserialize(path.read_bytes()))
    assert set(read) == {*tree, "key"}
    assert {tag: read[name]["dtype"] for name, tag in SOME_TAGS.items()} == {tag: tag for tag in SOME_TAGS.values()}
    assert read["complex64"]["shape"] == [2, 3, 2] and read["key"]["shape"] == [2]
    assert bytes(read["float64"]["data"]) == np.ones(6).tobytes()


SOME_TAGS = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e8m0fnu": "F8_E8M0", "bool": "BOOL", "int4": "I8"}


def test_numpys_archives_refuse_keys(path):
    with pytest.raises(TypeError, match=r"Their words, which are uint32, are random\.key_data\(keys\)"):
        np.savez(path, key=tl.random.key(0))


# ---- writing


def test_a_file_is_there_whole_or_not_at_all(path, monkeypatch):
    tl.save(path, X)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        tl.save(path, [X, X])
    assert [each.name for each in path.parent.iterdir()] == [path.name] and same(tl.load(path), tnp.asarray(X))


@pytest.mark.parametrize("place", ["missing/x", "file/x", "folder"])
def test_errors_name_the_path_that_was_given(place, tmp_path, monkeypatch):
    """Not the file beside it that is written first."""
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    kind, text = {
        "missing/x": (FileNotFoundError, "[Errno 2] No such file or directory: 'missing/x'"),
        "file/x": (NotADirectoryError, "[Errno 20] Not a directory: 'file/x'"),
        "folder": (IsADirectoryError, "[Errno 21] Is a directory: 'folder'"),
    }[place]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind) as caught:
        tl.save(place, X)
    assert str(caught.value) == text
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["file", "folder"]


def test_links_and_modes(path):
    os.umask(umask := os.umask(0))
    link = path.with_name("link")
    link.symlink_to(path.name)
    tl.save(str(link), X)
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize(
    "tree, message",
    [
        (
            {"r": UserDict(x=X)},
            "save: the leaf at ['r'] is of type UserDict; files hold arrays, keys, numbers, strings and None.\n"
            "  Write dict(...) around it.",
        ),
        ({"f": len}, "save: the leaf at ['f'] is <built-in function len> of type builtin_function_or_method; "),
        (
            {"m": np.ma.masked_array([1, 2], [True, False])},
            "save: the leaf at ['m'] is a masked array.\n  A masked array would lose its mask: fill it, ",
        ),
        ([np.array(["a"])], "save: the leaf at [0] cannot be saved: "),
        ([np.zeros(2, tl.float0)], "save: the leaf at [0] cannot be saved: float0 has no elements."),
        (({(1, 2): X},), "save: the dict at [0] has the key (1, 2) of type tuple; files have keys that are strings or"),
    ],
)
def test_what_cannot_be_saved(path, tree, message):
    with pytest.raises(TypeError) as raised:
        tl.save(path, tree)
    assert str(raised.value).startswith(message) and not path.exists()


def test_traced_arrays_cannot_be_saved(path):
    with pytest.raises(tl.errors.TracerArrayConversionError):
        tl.jit(lambda x: tl.save(path, x))(X)
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(RecursionError, match="the pytree contains itself"):
        tl.save(path, loop)


# ---- files that are refused


def contents(tree: Any = None, **changes: Any) -> bytes:
    """A file of two arrays, with changes of its header: of the metadata, or of the entry of an array."""
    nodes = json.dumps(NODES if tree is None else tree)
    header: dict[str, Any] = {
        "__metadata__": {"tapeless.format": "1", "tapeless.crc32": checksum_of_text(nodes), "tapeless.tree": nodes},
        "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        "b": {"dtype": "BOOL", "shape": [2], "data_offsets": [8, 10]},
    }
    for name, value in changes.items():
        header[name] = value
    text = json.dumps({name: value for name, value in header.items() if value is not None}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(10)


NODES = [
    ["dict", [["str", "a"], ["str", "b"]]],
    ["array", "a", "float32", [2], zlib.crc32(bytes(8)), False],
    ["array", "b", "bool", [2], zlib.crc32(bytes(2)), False],
]
A, B, D = NODES[1], NODES[2], NODES[0]
WHOLE = contents()


def entry(dtype="F32", shape=(2,), data_offsets=(0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(data_offsets)}


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"", "it has 0 bytes, fewer than the length of a header takes"),
        (b"PK\x03\x04" + bytes(30), "it is cut short: its header takes 67324752 bytes, and 26 follow"),
        (b"some text", "its first 8 bytes, b'some tex', are no length of a header, as files of save begin with"),
        (b"\x93NUMPY\x01\x00", "it was written by NumPy, and tapeless.numpy.load reads it"),
        (b"PK\x03\x04\x14" * 4, "it was written by NumPy, and tapeless.numpy.load reads it"),
        (WHOLE[:50], "it is cut short: its header takes "),
        (WHOLE[:-1], "it is cut short: its arrays take 10 bytes, and 9 follow the header"),
        (WHOLE + b"\0", "it has more bytes than its header says: its arrays take 10 bytes, and 11 follow the header"),
        (bytes([2]) + bytes(7) + b"[]", "it is no safetensors file: no '{' begins its header"),
        (bytes([2]) + bytes(7) + b"{]", "its header is no JSON that is read here: "),
        (bytes([3]) + bytes(7) + b"{\xff}", "its header is no JSON that is read here: 'utf-8' codec can't decode"),
        (bytes([15]) + bytes(7) + b'{"a":1, "a": 2}', "its header is no JSON that is read here: a name is there twice"),
        (bytes([9]) + bytes(7) + b'{"a":NaN}', "its header is no JSON that is read here: NaN is no number of JSON"),
        (
            (400005).to_bytes(8, "little") + b'{"a":' + b"[" * 200000 + b"]" * 200000,
            "its header is nested too deeply",
        ),
        (contents(__metadata__=None), "it is a safetensors file that save did not write: no tree is described in it"),
        (contents(__metadata__={"a": 1}), "the metadata of its header are not texts"),
        (
            contents(__metadata__={"tapeless.format": "9", "tapeless.tree": "[]"}),
            "it is of format 9, of another version of tapeless; this one reads 1",
        ),
        (contents(a=[]), "the entry of 'a' in its header has not just a dtype, a shape and data_offsets"),
        (contents(a=entry(dtype="F3")), "the dtype of 'a', 'F3', is not one of BOOL, U8, "),
        (contents(a=entry(dtype=[])), "the dtype of 'a', [], is not one of BOOL, U8, "),
        (contents(a=entry(shape=[-2])), "the shape of 'a' is no list of up to 64 sizes"),
        (contents(a=entry(shape=[True] * 2)), "the shape of 'a' is no list of up to 64 sizes"),
        (contents(a=entry(shape=[1] * 65)), "the shape of 'a' is no list of up to 64 sizes"),
        (contents(a=entry(shape=[0, 2**62])), "the shape of 'a' is larger than arrays get"),
        (contents(a=entry(data_offsets=[0])), "the data_offsets of 'a' are not two positions"),
        (contents(a=entry(data_offsets=[8, 0])), "'a' leaves a gap before it: it begins at byte 8, and not at 0"),
        (contents(b=entry("BOOL", [2], [7, 9])), "'b' overlaps the array before it: it begins at byte 7, and not at 8"),
        (contents(a=entry(shape=[3])), "'a' takes 12 bytes as F32[3], and its offsets give 8"),
        (contents(tree={}), "the description of its tree is damaged: it is no list"),
        (contents(tree=[]), "the description of its tree is damaged: it ends with 1 places empty"),
        (contents(tree=[D, A]), "the description of its tree is damaged: it ends with 1 places empty"),
        (contents(tree=[D, A, B, B]), "the description of its tree is damaged: it goes on after its end"),
        (contents(tree=[["tuple", -1]]), "the description of its tree is damaged: ['tuple', -1] is no scalar"),
        (contents(tree=[["set", 1]]), "the description of its tree is damaged: ['set', 1] is no scalar"),
        (contents(tree=[["deque", 3, 2]]), "the description of its tree is damaged: ['deque', 3, 2] is no scalar"),
        (contents(tree=[["float", "0x1p99999"]]), "the description of its tree is damaged: "),
        (contents(tree=[["dict", [["int", 1], ["bool", True]]], A, B]), "the description of its tree is damaged: "),
        (contents(tree=[D, A, A]), "the array 'b' is not once in both the header and the tree"),
        (contents(tree=[["list", 3], A, B, B]), "the array 'b' is not once in both the header and the tree"),
        (contents(tree=[D, [*A[:2], "float64", *A[3:]], B]), "'a' should be array float64[2], and is F32[2]"),
        (contents(tree=[D, [*A[:2], "float", *A[3:]], B]), "'a' should be array float[2], and is F32[2]"),
        (contents(tree=[D, [*A[:2], "object", *A[3:]], B]), "'a' should be array object[2], and is F32[2]"),
        (contents(tree=[D, [*A[:3], [1, 2], *A[4:]], B]), "'a' should be array float32[1, 2], and is F32[2]"),
        (contents(tree=[D, ["key", "a", "fry", [], A[4]], B]), "'a' should be key fry[], and is F32[2]"),
        (WHOLE.replace(b"[2], 11", b"[2], 12"), "the description of its tree is damaged: its checksum differs"),
        (WHOLE[:-1] + b"\1", "'b' is damaged: the checksum of its elements differs"),
    ],
)
def test_files_that_are_refused(path, data, reason):
    path.write_bytes(data)
    with pytest.raises(ValueError) as raised:
        tl.load(path)
    assert str(raised.value).startswith(f"load: {path} cannot be read: {reason}")


def test_bytes_that_are_no_values(path):
    for name, wrong in (("int2", 2), ("uint4", 16), ("float4_e2m1fn", 16)):
        tl.save(path, tnp.ones(2, name))
        path.write_bytes(path.read_bytes()[:-1] + bytes([wrong]))
        with raises(ValueError, f"load: {path} cannot be read: 'array' is damaged: a byte of it is no {name}."):
            tl.load(path, mmap=True)


@settings(deadline=None)
@given(st.data())
def test_damage_is_refused_or_changes_nothing(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / f"damaged-{os.getpid()}"
    content = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(WHOLE) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.sampled_from([len(WHOLE), len(WHOLE) - 4, 100]))])
    try:
        assert same(tl.load(path), {"a": tnp.zeros(2), "b": tnp.zeros(2, bool)})
    except ValueError as error:
        assert str(error).startswith(f"load: {path} ")


def test_nothing_that_a_file_names_is_imported(path):
    nodes = [["class", "antigravity:Thing", ["x", "y"]], A, B]
    path.write_bytes(contents(tree=nodes))
    code = (
        "import sys, tapeless as tl\ntry: tl.load(sys.argv[1])\n"
        "except ValueError: print('antigravity' in sys.modules, 'pickle' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "False"


def test_big_endian_machines_are_refused(path, monkeypatch):
    tl.save(path, X)
    monkeypatch.setattr(safetensors_layout.sys, "byteorder", "big")
    for who, call in (("save", lambda: tl.save(path, X)), ("load", lambda: tl.load(path))):
        message = f"{who}: files hold little-endian elements, and this machine is big-endian."
        with raises(NotImplementedError, message):
            call()


SAVED = {"w": X, "p": Point(np.arange(2), X), "l": [2.0]}


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"p": Point(1, X)}, "at ['p'].x: int64[2] in the file, a Python int in like."),
        ({"w": X[:2]}, "at ['w']: float32[3] in the file, float32[2] in like."),
        ({"w": tl.ShapeDtypeStruct((3,), "bfloat16")}, "at ['w']: float32[3] in the file, bfloat16[3] in like."),
        ({"w": tl.random.key(0)}, "at ['w']: float32[3] in the file, key<fry>[] in like."),
        ({"l": [2]}, "at ['l'][0]: a Python float in the file, a Python int in like."),
        ({"l": (2.0,)}, "at ['l']: a list of 1 in the file, a tuple of 1 in like."),
        ({"l": [X]}, "at ['l'][0]: a Python float in the file, float32[3] in like."),
        ({"p": (X, X)}, "at ['p']: a Point of .x, .y in the file, a tuple of 2 in like."),
        ({"p": None}, "at ['p']: a Point of .x, .y in the file, None in like."),
        ({"q": X}, "at the root: a dict of 'l', 'p', 'w' in the file, a dict of 'l', 'p', 'q', 'w' in like."),
    ],
)
def test_like_that_differs(path, changes, message):
    tl.save(path, SAVED)
    with raises(ValueError, f"load: {path} and like differ {message}"):
        tl.load(path, like=SAVED | changes)


def test_like_with_a_leaf_that_is_nothing(path):
    tl.save(path, [X])
    with raises(
        TypeError,
        "load: like has <built-in function len> of type builtin_function_or_method at [0]; "
        "its leaves are arrays, types of arrays, numbers and strings.",
    ):
        tl.load(path, like=[len])
