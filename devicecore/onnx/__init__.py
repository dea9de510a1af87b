"""ONNX models as kernels: arrays in and out, on whatever device ONNX Runtime reaches."""

from devicecore.optional import require

require("numpy", extra="onnx")  # else a file with its name would be told by what it lacks only

from devicecore.onnx.model import OnnxModel  # noqa: E402
from devicecore.onnx.model_signature import ValueInfo  # noqa: E402
from devicecore.onnx.session_options import session_options  # noqa: E402

__all__ = ["OnnxModel", "ValueInfo", "session_options"]


def __dir__() -> list[str]:
    return sorted(__all__)
