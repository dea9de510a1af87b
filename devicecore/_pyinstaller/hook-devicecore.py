"""What a program that PyInstaller freezes needs of devicecore, which imports by name and late.

PyInstaller runs this file and takes its global names; nothing else imports it.
"""

from __future__ import annotations

from PyInstaller.utils.hooks import collect_all, collect_submodules, copy_metadata

from devicecore.discovery import FACTORY_GROUP, KERNEL_GROUP
from devicecore.entry_points import entry_points
from devicecore.optional import installed
from devicecore.ort import provider_library
from devicecore.ort.libraries import wheel_libraries
from devicecore.ort.providers import PROVIDERS

# Those are for tests, or for PyInstaller.
_NOT_SHIPPED = ("devicecore._pyinstaller", "devicecore.testing")
# What no `import` line names.
_BACKENDS = ("cv2", "numpy", "onnxruntime", "psutil", "torch")


def _is_shipped(name: str) -> bool:
    return not name.startswith(_NOT_SHIPPED)


hiddenimports = [name for name in _BACKENDS if installed(name)]
for _package in ("devicecore", "devicecore_factories"):
    # A part that cannot be imported here belongs to a framework that is not installed.
    hiddenimports += collect_submodules(_package, filter=_is_shipped, on_error="ignore")

# A program that uses one of these with devicecore imports it itself.
excludedimports = ["PIL", "kornia", "onnx", "rich"]

datas = []
binaries = []
for _point in [*entry_points(FACTORY_GROUP), *entry_points(KERNEL_GROUP)]:
    hiddenimports.append(_point.value.partition(":")[0].strip())
    datas += copy_metadata(_point.distribution)  # where a plug-in says that it is one

for _known in PROVIDERS.values():
    if _known.plugin and installed(_known.plugin.module):
        _datas, _binaries, _imports = collect_all(_known.plugin.module)
        datas += _datas
        binaries += _binaries
        hiddenimports += _imports

if provider_library("CUDAExecutionProvider"):
    # The loader does not find these by itself, so they are looked up in their own folders.
    binaries += [
        (str(file), f"nvidia/{file.parent.parent.name}/lib") for file in wheel_libraries().values()
    ]

# As files too: Triton compiles its kernels from their source, and what build of ONNX Runtime this
# is stands in a file of its.
module_collection_mode = {
    "devicecore.cv.ops": "pyz+py",
    "devicecore.cv.triton_support": "pyz+py",
    "onnxruntime.capi.build_and_package_info": "pyz+py",
}
