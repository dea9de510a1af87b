"""ONNX models as kernels: numpy arrays in and out, on whatever device ONNX Runtime reaches."""

from devicecore.onnx.model import OnnxModel

__all__ = ["OnnxModel"]
