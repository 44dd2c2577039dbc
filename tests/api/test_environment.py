"""What there is: processes, arrays that live, versions; the passes of reverse mode apart; dlpack, the profiler."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tests.messages import raises


def test_one_process():
    assert (tl.process_count(), tl.process_index(), tl.process_indices("cpu")) == (1, 0, [0])
    assert tl.local_device_count() == len(tl.local_devices())
    assert tl.float0 is tl.dtypes.float0


def test_live_arrays():
    x = tnp.arange(12345.0)
    assert any(y.shape == (12345,) and y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer() for y in tl.live_arrays())
    del x
    assert not any(y.shape == (12345,) for y in tl.live_arrays())


def test_environment(capsys: pytest.CaptureFixture[str]):
    text = tl.print_environment_info(return_string=True)
    assert text is not None and f"numpy:  {np.__version__}" in text and "process_count: 1" in text
    assert tl.print_environment_info() is None and capsys.readouterr().out == f"{text}\n"


def test_copies_to_the_host():
    tree = {"x": tnp.ones(3), "n": "text"}
    assert tl.copy_to_host_async(tree) is tree
    deleted = tnp.ones(3)
    deleted.delete()
    with pytest.raises(RuntimeError, match="deleted or donated"):
        deleted.copy_to_host_async()


def test_passes_apart():
    def f(x, w):
        return (x["a"] @ w).sum(), x["a"].shape

    x, w = {"a": tnp.arange(6.0).reshape(2, 3)}, tnp.ones((3, 2))
    for jitted in (True, False):
        fwd, bwd = tl.fwd_and_bwd(lambda x, w: f(x, w)[0], (0, 1), jitted=jitted)
        value, residuals = fwd(x, w)
        gradients = bwd(residuals, 2.0)
        assert float(value) == 30
        np.testing.assert_array_equal(gradients[0]["a"], 4 * np.ones((2, 3)))
        np.testing.assert_array_equal(gradients[1], 2 * np.asarray(x["a"]).sum(0)[:, None] * np.ones(2))
    fwd, bwd = tl.fwd_and_bwd(lambda x, w: ((x * w).sum(), {"n": x.size}), -1, has_aux=True)
    value, residuals, aux = fwd(w, w)
    assert (float(value), int(aux["n"])) == (6, 6)
    np.testing.assert_array_equal(bwd(residuals, 1.0), w)
    with pytest.raises(ValueError, match="fwd_and_bwd: argnums=2 names argument 2, but"):
        tl.fwd_and_bwd(lambda x: x, 2, jitted=False)[0](1.0)


def test_dlpack():
    assert tl.dlpack.from_dlpack is tl.from_dlpack
    assert tl.dlpack.is_supported_dtype("bfloat16") and tl.dlpack.is_supported_dtype(np.complex64)
    assert not tl.dlpack.is_supported_dtype("int4")
    with raises(TypeError, "is_supported_dtype: expected a dtype, not None."):
        tl.dlpack.is_supported_dtype(None)


def test_traces(tmp_path: Path):
    f, x = tl.jit(lambda x: x * 3), tnp.ones(3)
    with tl.profiler.trace(tmp_path, create_perfetto_trace=True):
        with pytest.raises(RuntimeError, match="start_trace: a trace is being recorded"):
            tl.profiler.start_trace(tmp_path)
        with tl.profiler.StepTraceAnnotation("a step", step_num=3):
            f(x).block_until_ready()
        np.testing.assert_array_equal(tl.profiler.annotate_function(f, name="a call")(x), [3, 3, 3])
    (recorded,) = tmp_path.glob("**/*.xplane.pb")
    planes = tl.profiler.ProfileData.from_file(str(recorded)).planes
    names = {event.name for plane in planes for line in plane.lines for event in line.events}
    assert {"a step", "a call"} <= names
    (perfetto,) = tmp_path.glob("**/perfetto_trace.json.gz")
    events = json.loads(gzip.decompress(perfetto.read_bytes()))
    assert "metadata" not in events and any(event.get("name") == "a call" for event in events["traceEvents"])
    with raises(RuntimeError, "stop_trace: no trace is being recorded."):
        tl.profiler.stop_trace()
    with pytest.raises(NotImplementedError, match="create_perfetto_link=True is not there"):
        tl.profiler.start_trace(tmp_path, create_perfetto_link=True)


def test_memory_profile(tmp_path: Path):
    tl.profiler.save_device_memory_profile(tmp_path / "memory.prof")
    assert (tmp_path / "memory.prof").read_bytes()


def test_profiler_server():
    with raises(ValueError, "stop_server: no server is running."):
        tl.profiler.stop_server()


def test_older_names_of_processes():
    for old, new in (("host_count", 1), ("host_id", 0), ("host_ids", [0])):
        with pytest.warns(DeprecationWarning, match=f"{old} is an older name of process"):
            assert getattr(tl, old)() == new
