"""The registry of strategies: by calls, decorators, groups and files."""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from devicecore.errors import RegistrationError
from devicecore.migrate import (
    EnsureTensor,
    MigrationStrategy,
    PassThrough,
    StrategyRegistry,
    SwapArgs,
    ToNumpy,
    default_strategies,
)
from devicecore.migrate.strategies.registry import LateImport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

OWN = MigrationStrategy(len)
OTHER = MigrationStrategy(sum)


@pytest.fixture
def registry() -> StrategyRegistry:
    return StrategyRegistry()


def test_a_strategy_is_found_by_its_functions_name(registry: StrategyRegistry) -> None:
    assert registry.register("app.part.f", OWN) is OWN
    registry.register("app.part:Class.method", OTHER)
    assert registry.find("app.part", "f") is OWN
    assert registry.find("app.part", "Class.method") is OTHER
    assert registry.find("app", "part.f") is OWN
    assert registry.find("app.part", "g") is None
    assert registry.packages == {"app"}
    assert registry.names(["app", "other"]) == ["app.part.Class.method", "app.part.f"]
    registry.register("app.part.f", OTHER)
    assert registry.find("app.part", "f") is OTHER


def test_a_decorator_registers_the_backend_and_leaves_it(registry: StrategyRegistry) -> None:
    def backend(x: Any) -> Any:
        return x

    decorate = registry.register("app.f", input_processors=[PassThrough()], named_processors={})
    assert decorate(backend) is backend
    found = registry.find("app", "f")
    assert isinstance(found, MigrationStrategy)
    assert (found.backend, found.input_processors) == (backend, (PassThrough(),))


@pytest.mark.parametrize("name", ["f", "", "app.", ".f", "app.a b", "app:f:g", "app/f"])
def test_names_that_are_none(name: str, registry: StrategyRegistry) -> None:
    with pytest.raises(RegistrationError, match="it names no function of a module"):
        registry.register(name, OWN)


def test_what_is_no_strategy(registry: StrategyRegistry) -> None:
    no_strategy: Any = len
    with pytest.raises(RegistrationError, match=r"has no compute\(device, options, original"):
        registry.register("app.f", no_strategy)

    class Half:
        def compute(self) -> None:
            pass

    half: Any = Half()
    with pytest.raises(RegistrationError, match="does not say whether it runs_original"):
        registry.register("app.f", half)


def test_a_group_is_asked_when_it_is_needed(registry: StrategyRegistry) -> None:
    asked: list[int] = []

    def group() -> Mapping[str, MigrationStrategy]:
        asked.append(0)
        return {"app.f": OWN, "app.g": OWN}

    registry.register_group("app", group)
    registry.register("app.g", OTHER)  # what is registered by hand stays
    assert registry.packages == {"app"}
    assert registry.find("another", "f") is None
    assert asked == []
    assert registry.find("app.part", "f") is None
    assert registry.find("app", "f") is OWN
    assert registry.find("app", "g") is OTHER
    assert registry.names(["app"]) == ["app.f", "app.g"]
    assert len(asked) == 1


def test_no_thread_misses_a_group_that_another_one_is_loading(registry: StrategyRegistry) -> None:
    inside, go_on = threading.Event(), threading.Event()
    first: list[Any] = []

    def group() -> Mapping[str, MigrationStrategy]:
        if threading.current_thread() is thread:
            inside.set()
            assert go_on.wait(30)
        return {"app.f": OWN}

    registry.register_group("app", group)
    thread = threading.Thread(target=lambda: first.append(registry.find("app", "f")))
    thread.start()
    assert inside.wait(30)
    assert registry.find("app", "f") is OWN
    go_on.set()
    thread.join()
    assert first == [OWN]


def test_a_group_that_cannot_be_loaded_is_asked_again(registry: StrategyRegistry) -> None:
    answers = iter([ImportError("not installed"), {"app.f": OWN}])

    def group() -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    registry.register_group("app", group)
    with pytest.raises(ImportError):
        registry.find("app", "f")
    assert registry.find("app", "f") is OWN


# --- files ----------------------------------------------------------------------------------------

TOML = """
["app.part.f"]
backend = "made_backend:double"
inputs = ["EnsureTensor", "made_backend:processor"]
named_inputs = { y = "EnsureTensor" }
arguments = "SwapArgs"
output = "ToNumpy"

[app.part.g]
backend = "made_backend:double"
"""


def _checked(registry: StrategyRegistry) -> None:
    found = registry.find("app.part", "f")
    assert isinstance(found, MigrationStrategy)
    assert found.backend == LateImport("made_backend:double")
    assert found.input_processors == (EnsureTensor(), LateImport("made_backend:processor"))
    assert found.named_processors == {"y": EnsureTensor()}
    assert (found.arg_mapper, found.output_processor) == (SwapArgs(), ToNumpy())
    plain = registry.find("app.part", "g")
    assert isinstance(plain, MigrationStrategy)
    assert plain.input_processors == ()
    assert "made_backend" not in sys.modules


def test_a_file_of_toml(registry: StrategyRegistry, tmp_path: Path) -> None:
    path = tmp_path / "strategies.toml"
    path.write_text(TOML)
    registry.load(path)
    _checked(registry)


def test_a_file_of_json(registry: StrategyRegistry, tmp_path: Path) -> None:
    import tomllib

    path = tmp_path / "strategies.json"
    path.write_text(json.dumps(tomllib.loads(TOML)))
    registry.load(str(path))
    _checked(registry)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting"),
        ("[]", "it has no tables"),
        ('{"app.f": {}}', "its entry has no backend"),
        ('{"app.f": "made_a:f"}', "its entry has no backend"),
        ('{"app.f": {"backend": "f"}}', "its entry names 'f'"),
        ('{"app.f": {"backend": 3}}', "its entry names 3"),
        ('{"app.f": {"backend": "a:b", "input": []}}', "'input'; write inputs"),
        ('{"app.f": {"backend": "a:b", "inputs": "EnsureTensor"}}', "write a list of names"),
        ('{"app.f": {"backend": "a:b", "named_inputs": []}}', "write a table of names"),
        ('{"app.f": {"backend": "a:b", "inputs": ["EnsureTensr"]}}', "'EnsureTensr'"),
        ('{"f": {"backend": "a:b"}}', "it names no function of a module"),
    ],
    ids=range(11),
)
def test_files_that_are_wrong(
    text: str, reason: str, registry: StrategyRegistry, tmp_path: Path
) -> None:
    path = tmp_path / "strategies.json"
    good = '{"app.good": {"backend": "a:b"}, ' + text[1:] if text.startswith('{"') else text
    path.write_text(good)
    with pytest.raises(RegistrationError, match=reason):
        registry.load(path)
    assert registry.packages == set()  # nothing of it, not even what was right


def test_a_file_that_is_not_there(registry: StrategyRegistry, tmp_path: Path) -> None:
    with pytest.raises(RegistrationError, match="No such file"):
        registry.load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"\xe9")
    with pytest.raises(RegistrationError, match="utf-8"):
        registry.load(tmp_path / "latin.toml")


def test_a_reference_is_imported_when_it_is_called(write: Callable[..., None]) -> None:
    write(made_backend="def double(x):\n    return 2 * x\n")
    reference = LateImport("made_backend:double")
    assert "made_backend" not in sys.modules
    assert reference(3) == reference(3) == 6
    for name in ("made_backend:triple", "made_nowhere:f"):
        with pytest.raises(RegistrationError, match="install it, or correct"):
            LateImport(name)(3)


def test_the_default_ones_import_nothing_until_they_are_needed() -> None:
    registry = default_strategies()
    assert {"cv2", "numpy", "scipy"} <= registry.packages
    assert registry is not default_strategies()
    pytest.importorskip("cv2")
    names = registry.names(["cv2"])
    assert {"cv2.resize", "cv2.warpAffine"} <= set(names)
    assert not any("_apply" in name for name in names)
