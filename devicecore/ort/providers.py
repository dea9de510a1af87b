"""The providers of ONNX Runtime that we know: whose they are, and what brings them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from devicecore.names import PROVIDER_TYPES

if TYPE_CHECKING:
    from collections.abc import Mapping


@frozen
class Plugin:
    """A provider shipped as a library of its own, next to any ONNX Runtime.

    Attributes:
        distribution: What pip installs.
        module: The package that the library lies in.
        library: The library's name without prefix and suffix.
        import_first: Whether importing its package puts right what the library needs.
    """

    distribution: str
    module: str
    library: str
    import_first: bool = False


@frozen
class Provider:
    """One provider of ONNX Runtime.

    Attributes:
        name: ONNX Runtime's name of it.
        distributions: The builds of ONNX Runtime that contain it, best first.
        library: The library of its own in such a build, without prefix and suffix; empty if it is
            compiled into ONNX Runtime itself.
        platform: The only ``sys.platform`` it exists for; empty if there are several.
        plugin: The plug-in that brings it to any ONNX Runtime, if there is one.
        replaced_by: The provider that took its place, if it was removed.
        note: What a person should know about its name.
    """

    name: str
    distributions: tuple[str, ...] = ()
    library: str = ""
    platform: str = ""
    plugin: Plugin | None = None
    replaced_by: str = ""
    note: str = ""

    @property
    def device_type(self) -> str | None:
        """The device type that it serves; None where we have no factory for it."""
        return PROVIDER_TYPES.get(self.name)


_TABLE = (
    Provider("CPUExecutionProvider", ("onnxruntime",)),
    Provider("CUDAExecutionProvider", ("onnxruntime-gpu",), "onnxruntime_providers_cuda"),
    Provider(
        "TensorrtExecutionProvider",
        ("onnxruntime-gpu",),
        "onnxruntime_providers_tensorrt",
    ),
    Provider(
        "NvTensorRTRTXExecutionProvider",
        plugin=Plugin(
            "onnxruntime-ep-nv-tensorrt-rtx-cu13",
            "onnxruntime_ep_nv_tensorrt_rtx",
            "onnxruntime_providers_nv_tensorrt_rtx",
            import_first=True,
        ),
        note="a plug-in only; the TensorRT provider is another one",
    ),
    Provider(
        "cuda_ep",
        plugin=Plugin("nxrt-ep-cuda", "nxrt_ep_cuda", "onnx_runtime_ep_cuda_plugin"),
        note="CUDA for any build of ONNX Runtime, by others; a preview",
    ),
    Provider("CoreMLExecutionProvider", ("onnxruntime",), platform="darwin"),
    Provider(
        "MIGraphXExecutionProvider",
        ("onnxruntime-migraphx",),
        "onnxruntime_providers_migraphx",
        platform="linux",
    ),
    Provider(
        "ROCMExecutionProvider",
        ("onnxruntime-rocm",),
        "onnxruntime_providers_rocm",
        platform="linux",
        replaced_by="MIGraphXExecutionProvider",
        note="removed after onnxruntime 1.22; use MIGraphX",
    ),
    Provider(
        "OpenVINOExecutionProvider",
        ("onnxruntime-openvino",),
        "onnxruntime_providers_openvino",
        plugin=Plugin(
            "onnxruntime-ep-openvino",
            "onnxruntime_ep_openvino",
            "onnxruntime_providers_openvino_plugin",
        ),
    ),
    Provider(
        "WebGpuExecutionProvider",
        ("onnxruntime-webgpu",),
        plugin=Plugin(
            "onnxruntime-ep-webgpu", "onnxruntime_ep_webgpu", "onnxruntime_providers_webgpu"
        ),
    ),
    Provider(
        "DmlExecutionProvider",
        distributions=("onnxruntime-directml",),
        platform="win32",
        note="DirectML: known, without a factory yet",
    ),
    Provider(
        "QNNExecutionProvider",
        distributions=("onnxruntime-qnn",),
        library="onnxruntime_providers_qnn",
        note="Qualcomm's NPUs: known, without a factory yet",
    ),
    Provider(
        "VitisAIExecutionProvider",
        library="onnxruntime_providers_vitisai",
        note="AMD's NPUs: known, without a factory yet",
    ),
    Provider(
        "CANNExecutionProvider",
        distributions=("onnxruntime-cann",),
        library="onnxruntime_providers_cann",
        platform="linux",
        note="Huawei's NPUs: known, without a factory yet",
    ),
    Provider(
        "DnnlExecutionProvider",
        library="onnxruntime_providers_dnnl",
        note="oneDNN: in builds from source only",
    ),
    Provider("XnnpackExecutionProvider", note="in mobile builds only"),
    Provider("NnapiExecutionProvider", platform="android", note="Android only"),
    Provider("RknpuExecutionProvider", note="in builds from source only"),
    Provider("VSINPUExecutionProvider", note="in builds from source only"),
    Provider("JsExecutionProvider", platform="emscripten", note="browsers only"),
    Provider("WebNNExecutionProvider", platform="emscripten", note="browsers only"),
    Provider("AzureExecutionProvider", note="calls a service; it computes nothing here"),
)

PROVIDERS: Mapping[str, Provider] = {provider.name: provider for provider in _TABLE}


def provider_named(name: str) -> Provider:
    """Return what is known of the provider *name*; an unknown one has nothing but its name."""
    return PROVIDERS.get(name) or Provider(name)
