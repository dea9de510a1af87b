"""ONNX models as kernels: arrays in and out, on whatever device ONNX Runtime reaches."""

from devicecore.onnx.declared import ValueInfo
from devicecore.onnx.model import OnnxModel
from devicecore.onnx.session_options import session_options

__all__ = ["OnnxModel", "ValueInfo", "session_options"]
