"""What JAX, TensorFlow and Paddle each need of their own; `make test-frameworks` runs it."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from devicecore import Device, current_device, default_ledger, device_scope
from devicecore.errors import NotLiveError, ScopeError
from devicecore.optional import installed
from devicecore.runtime import host_cpu
from devicecore.scope import adapters
from tests.scope.conftest import in_child, in_thread, the

if TYPE_CHECKING:
    from tests.scope.conftest import Framework

GPU = Device("/device:CUDA:0", device_class="GPU")


def need(name: str) -> pytest.MarkDecorator:
    reason = f"{name} is not installed here; `make test-frameworks` has it"
    return pytest.mark.skipif(not installed(name), reason=reason)


@pytest.fixture
def jax(made_frameworks: dict[str, Framework], tmp_path_factory: pytest.TempPathFactory) -> Any:
    framework: Any = the("jax", made_frameworks, tmp_path_factory)
    return framework.jax


@pytest.fixture
def tensorflow(
    made_frameworks: dict[str, Framework], tmp_path_factory: pytest.TempPathFactory
) -> Any:
    framework: Any = the("tensorflow", made_frameworks, tmp_path_factory)
    return framework.tensorflow


@pytest.fixture
def paddle(made_frameworks: dict[str, Framework], tmp_path_factory: pytest.TempPathFactory) -> Any:
    framework: Any = the("paddle", made_frameworks, tmp_path_factory)
    return framework.paddle


# --- JAX ------------------------------------------------------------------------------------------


@need("jax")
def test_a_device_of_jax(jax: Any) -> None:
    with device_scope(jax.devices()[3]) as device:
        assert str(device.parsed_name) == "/device:CPU:3"
        assert jax.numpy.zeros(1).device.id == 3
    with device_scope(jax.devices()[0]) as device:
        assert device is host_cpu()
        assert jax.numpy.zeros(1).device.id == 0


@need("jax")
@pytest.mark.parametrize("platforms", ["cuda", "tpu", "nonsense", "cpu,cuda"])
def test_a_jax_that_is_to_use_what_its_wheel_has_not(platforms: str) -> None:
    code = f"""
import os
os.environ["JAX_PLATFORMS"] = {platforms!r}
import jax
from devicecore import device_scope
from devicecore.errors import NotLiveError
said = []
with device_scope("cpu") as device:
    said.append(device.name[-5:])
try:
    with device_scope("cpu", frameworks="jax"):
        said.append(str(jax.numpy.ones(1)))
except NotLiveError as error:
    said.append(error.reason)
print(json.dumps(said))
"""
    reason = f"JAX has 0 devices of that kind, limited to JAX_PLATFORMS={platforms}"
    assert in_child(code) == ["CPU:0", "[1.]" if "cpu" in platforms else reason]


@need("jax")
def test_compiled_code_of_jax_follows(jax: Any) -> None:
    compiled = jax.jit(lambda: jax.numpy.zeros(1) + 1)
    for index in (1, 2):
        with device_scope(f"cpu:{index}"):
            assert compiled().device.id == index


@need("jax")
def test_a_scope_that_jax_would_ignore_is_refused(jax: Any) -> None:
    @device_scope("cpu:1")
    def inner() -> Any:
        return jax.numpy.zeros(1)

    compiled = jax.jit(inner)
    with pytest.raises(ScopeError, match="JAX is tracing"):
        compiled()
    with device_scope("cpu:1"):
        assert compiled().device.id == 1
    assert current_device() is host_cpu()
    assert jax.numpy.zeros(1).device.id == 0


@need("jax")
def test_compiled_code_of_jax_may_enter_the_device_that_it_runs_on(jax: Any) -> None:
    @jax.jit  # type: ignore[untyped-decorator]
    def outer() -> Any:
        with device_scope("cpu:0"):
            return jax.numpy.zeros(1)

    assert outer().device.id == 0
    with device_scope("cpu:0"):
        assert outer().device.id == 0
    with pytest.raises(ScopeError, match="JAX is tracing"), device_scope("cpu:1"):
        outer()


@need("jax")
def test_the_default_of_jax_that_another_thread_sets_stays(jax: Any) -> None:
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with device_scope("cpu:1"):
            inside.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(60)
    try:
        jax.config.update("jax_default_device", jax.devices()[3])
        done.set()
        thread.join(60)
        assert jax.numpy.zeros(1).device.id == 3
    finally:
        jax.config.update("jax_default_device", None)


@need("jax")
def test_the_default_of_jax_that_is_set_inside_ends_with_the_scope(jax: Any) -> None:
    """JAX itself shows it to other threads alone until then."""

    def elsewhere() -> int:
        return int(in_thread(lambda: jax.numpy.zeros(1).device.id))

    with device_scope("cpu:1"):
        with device_scope("cpu:2"):
            jax.config.update("jax_default_device", jax.devices()[3])
            assert jax.numpy.zeros(1).device.id == 2
            assert elsewhere() == 3
        assert jax.numpy.zeros(1).device.id == 1
        assert elsewhere() == 0
    assert jax.config.jax_default_device is None


@need("jax")
def test_a_jax_that_keeps_its_default_elsewhere(jax: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from devicecore.frameworks.jax import JaxDefault

    monkeypatch.delitem(sys.modules, "jax._src.config")
    adapter = JaxDefault(jax)
    saved = adapter.enter(jax.devices()[1])
    jax.config.update("jax_default_device", jax.devices()[3])
    adapter.leave(saved)
    try:
        assert jax.numpy.zeros(1).device.id == 3
    finally:
        jax.config.update("jax_default_device", None)


@need("jax")
def test_jax_without_the_device(jax: Any) -> None:
    default_ledger().clear()
    with device_scope(GPU):
        assert jax.numpy.zeros(1).device.id == 0
    assert "JAX" in [move.op for move in default_ledger().moves()]
    default_ledger().clear()
    with pytest.raises(NotLiveError, match="CUDA:0 for JAX"), device_scope(GPU, frameworks="jax"):
        pytest.fail("entered")


@need("jax")
def test_the_host_opens_no_backend_of_jax() -> None:
    code = """
from devicecore import device_scope
with device_scope("cpu"):
    import jax
    inside = str(jax.config.jax_default_device)
    backends = len(jax._src.xla_bridge._backends)
    device = jax.numpy.zeros(1).device.id
print(json.dumps([inside, backends, device, jax.config.jax_default_device]))
"""
    assert in_child(code) == ["cpu", 0, 0, None]


# --- TensorFlow -----------------------------------------------------------------------------------


@need("tensorflow")
def test_tensorflow_never_goes_to_the_cpu_silently(tensorflow: Any) -> None:
    default_ledger().clear()
    with device_scope(GPU):
        assert tensorflow.zeros(1).device.endswith("CPU:0")
    assert "TensorFlow" in [move.op for move in default_ledger().moves()]
    default_ledger().clear()
    for device in (GPU, Device("/device:CPU:9")):
        scope = device_scope(device, frameworks="tensorflow")
        with pytest.raises(NotLiveError, match="TensorFlow lists /device:CPU:0"), scope:
            pytest.fail("entered")


@need("tensorflow")
def test_a_traced_function_of_tensorflow_follows_its_caller(tensorflow: Any) -> None:
    @tensorflow.function  # type: ignore[untyped-decorator]
    def outer() -> Any:
        return tensorflow.zeros(1) + 1

    for index in (1, 2):
        with device_scope(f"cpu:{index}"):
            assert outer().device.endswith(f"CPU:{index}")

    # With AutoGraph the error is the same, in an error of AutoGraph's.
    @tensorflow.function(autograph=False)  # type: ignore[untyped-decorator]
    @device_scope("cpu:1")
    def inner() -> Any:
        return tensorflow.zeros(1) + 1

    with pytest.raises(ScopeError, match="TensorFlow is tracing"):
        inner()
    with device_scope("cpu:1"):
        assert inner().device.endswith("CPU:1")


@need("tensorflow")
def test_tensorflow_imported_inside_follows_at_once() -> None:
    code = """
from devicecore import device_scope
with device_scope("cpu", frameworks="tensorflow"):
    import tensorflow
    with tensorflow.device("/device:CPU:0"):
        pass
    from tensorflow.python.eager import context
    inside = context.context().device_name
after = context.context().device_name
print(json.dumps([inside[-5:], after]))
"""
    assert in_child(code) == ["CPU:0", ""]


# --- Paddle ---------------------------------------------------------------------------------------


@need("paddle")
def test_places_of_paddle(paddle: Any) -> None:
    with device_scope(paddle.CustomPlace("custom_cpu", 3)) as device:
        assert str(device.parsed_name) == "/device:custom_cpu:3"
        assert str(paddle.zeros([1]).place) == "Place(custom_cpu:3)"
    with device_scope(paddle.CPUPlace()) as device:
        assert device is host_cpu()
        assert str(paddle.zeros([1]).place) == "Place(cpu)"


@need("paddle")
def test_paddle_tells_how_many_devices_it_has(paddle: Any) -> None:
    far = Device("/device:custom_cpu:4")
    with pytest.raises(NotLiveError, match="has 4 of them"), device_scope(far, frameworks="paddle"):
        pytest.fail("entered")
    with pytest.raises(LookupError), device_scope("custom_cpu:4"):
        pytest.fail("entered")
    upper = Device("/device:CUSTOM_CPU:2")
    with device_scope(upper):
        assert str(paddle.zeros([1]).place) == "Place(custom_cpu:2)"


@need("paddle")
def test_paddle_is_found_to_have_one_device_for_all_threads(paddle: Any) -> None:
    with device_scope("custom_cpu:1"):
        pass
    (adapter,) = [each for each in adapters.adapters() if each.title == "Paddle"]
    assert adapter.is_per_thread is False  # type: ignore[attr-defined]


@need("paddle")
def test_a_paddle_that_refuses_a_device_is_not_taken_for_another_kind(
    paddle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from devicecore.frameworks.paddle import PaddleDefault

    def refuse(place: str) -> None:
        raise OSError(place)

    adapter = PaddleDefault(paddle)
    with monkeypatch.context() as broken:
        broken.setattr(paddle.device, "set_device", refuse)
        with pytest.raises(OSError, match="custom_cpu:1"):
            adapter.enter("custom_cpu:1")
        assert adapter.is_per_thread is None
    adapter.leave(adapter.enter("custom_cpu:1"))
    assert adapter.is_per_thread is False


@need("paddle")
def test_a_paddle_that_keeps_a_device_for_each_thread(
    paddle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No Paddle does so yet: a stand-in does, that keeps its word in a ``threading.local``."""
    from devicecore.frameworks.paddle import PaddleDefault

    class Local(threading.local):
        place = "cpu"

    local = Local()
    monkeypatch.setattr(paddle.device, "get_device", lambda: local.place)
    monkeypatch.setattr(paddle.device, "set_device", lambda place: setattr(local, "place", place))
    adapter = PaddleDefault(paddle)
    saved = adapter.enter("custom_cpu:1")
    assert adapter.is_per_thread
    seen: list[str] = []

    def other() -> None:
        entry = adapter.enter("custom_cpu:2")
        seen.append(local.place)
        adapter.leave(entry)
        seen.append(local.place)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(60)
    assert seen == ["custom_cpu:2", "cpu"]
    assert local.place == "custom_cpu:1"
    adapter.leave(saved)
    assert local.place == "cpu"


@need("paddle")
def test_a_thread_inside_another_ones_scope_is_refused_everywhere(paddle: Any) -> None:
    """What the refused scope had set in other frameworks and what is current go back too."""
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with device_scope("custom_cpu:1"):
            inside.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(60)
    try:
        with pytest.raises(ScopeError, match="one device for all threads"), device_scope("cpu"):
            pytest.fail("entered")
        assert current_device() is host_cpu()
        assert str(paddle.zeros([1]).place) == "Place(custom_cpu:1)"
    finally:
        done.set()
        thread.join(60)
    assert str(paddle.zeros([1]).place) == "Place(custom_cpu:0)"
