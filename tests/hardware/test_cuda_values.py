"""What a real CUDA GPU computes of recorded values has numpy's bits."""

from __future__ import annotations

import numpy as np
import pytest

from devicecore.device_factory import default_registry
from devicecore.runtime import default_runtime

torch = pytest.importorskip("torch")
cv2 = pytest.importorskip("cv2")

from tests.migrate.recording.test_programs_of_numpy import check  # noqa: E402 - after cv2
from tests.migrate.recording.value_programs import VALUES  # noqa: E402

pytestmark = pytest.mark.hardware


@pytest.fixture(autouse=True)
def _gpu() -> None:
    registry = default_registry()
    found = registry.liveness_of(registry.factories("CUDA")[0], "torch")
    if not found.is_live:
        pytest.skip(f"CUDA for torch is {found.state}: {found.reason}")


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("name", sorted(VALUES))
def test_values_are_those_of_numpy(name: str, dtype: str) -> None:
    drawn = np.random.default_rng(3)
    images = [drawn.integers(0, 256, (61, 47, 3)).astype(dtype) for _ in range(2)]
    check(images, [(0, 1, ("values", name))], default_runtime().device("cuda:0", "torch"))
