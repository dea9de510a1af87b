"""The words of drivers and of libraries over them, by what they mean; from public reports."""

import re

OUT_OF_MEMORY = re.compile(
    r"\b(CUDA|HIP|XPU|MPS|Metal|WebGPU|Dawn|D3D12|OpenCL)\b[^\n]{0,80}\bout of memory\b(?! of\b)"
    r"|\[GPU\][^\n]{0,80}\bout of (memory|(GPU )?resources)"
    r"|\b(CU|HIP|ROC|MIOPEN)[A-Z]*_\w*ALLOC(ATION)?_FAILED|\bmiopenStatusAllocFailed"
    r"|\b(CU|HIP|VK)[A-Z]*_(ERROR_)?OUT_OF_(\w+_)?MEMORY"
    r"|^Allocation is out of device memory|DefaultCPUAllocator: (can't allocate|not enough) memory"
    r"|\brocblas_status_memory_error|\b(hip|cuda)Error(OutOfMemory|MemoryAllocation)"
    # Level Zero, and SYCL's Unified Runtime and Plugin Interface over it or over OpenCL.
    r"|\b(UR_RESULT_ERROR|ZE_RESULT_ERROR|PI_ERROR|CL)_"
    r"(OUT_OF_\w*MEMORY|OUT_OF_RESOURCES|MEM_OBJECT_ALLOCATION_FAILURE)"
    r"|\bLevel.Zero error\W{0,4}(0x)?7000000[23]"
    r"|\bHSA_STATUS_ERROR_OUT_OF_RESOURCES"
    # OpenVINO over OpenCL.
    r"|Exceeded max size of memory object allocation|can ?not allocate \d+ bytes for USM"
    r"|\[GPU\][^\n]{0,80}\b(can ?not|failed to) allocate\b"
    # Metal has buffers up to a certain size only.
    r"|^Invalid buffer size: [\d.]+ [KMGT]i?B\b|CommandBufferCallbackErrorOutOfMemory"
    r'|MTLCommandBufferError\w*[^\n]{0,40}"Insufficient Memory"'
    r"|(?m:^\s*Insufficient Memory\s*(\(|$))"
    # TensorRT, and DirectML's HRESULT.
    r"|\bCuda failure( at|:)? ?2\b|Error Code \d+: OutOfMemory"
    r"|\b8007000E\b[^\n]{0,20}\bNot enough memory",
    re.IGNORECASE,
)
DRIVER = re.compile(
    r"\b(CUDA|HIP|XPU|SYCL|MPS|Metal|WebGPU|Dawn|wgpu|Vulkan|Level.Zero|OpenCL|MIOpen|rocBLAS)\b"
    r"|\b(hipBLAS(Lt)?|D3D1[12]|DXGI|DirectML|TensorRT|CoreML|oneDNN)\b|\[GPU\]|\bby GPU node\b"
    r"|\b(UR_RESULT|ZE_RESULT|PI|VK|DXGI|CUDA)_ERROR_|\bHSA_STATUS_ERROR|\bCL_[A-Z]{2}"
    r"|\b(hip|cuda)Error[A-Z]|CommandBufferCallbackError|MTLCommandBufferError|\bGPUDevice"
    # What only a driver says, in so many words.
    r"|an illegal memory access was encountered|device-side assert triggered"
    r"|unspecified launch failure|uncorrectable (ECC|NVLink) error"
    r"|valid external Instance reference no longer exists",
    re.IGNORECASE,
)
# After one of these the context refuses all further work, so the GPU is lost to this process.
LOST = re.compile(
    r"illegal memory access|unspecified launch failure|device-side assert|misaligned address"
    r"|illegal instruction|invalid program counter|hardware stack error"
    r"|\bECC error\b(?!:)|NVLink error"
    r"|operation not supported on global/shared address space"
    r"|(CUDA|HIP)(\]|( (driver|runtime|kernel|launch))* (error|failure)\b[^\n:]{0,20})"
    r": unknown error"
    r"|context is destroyed"
    r"|valid external Instance reference no longer exists"
    r"|GPU is lost|fallen off the bus|device.?(instance )?.?(lost|removed(?! (from|by)\b)|hung)"
    r"|launch timed out"
    r"|device instance has been suspended|GPU will not respond to more commands"
    r"|DeviceRemovedReason|\b887A000[567]\b|\b887A0020\b"
    r"|(hip|cuda)Error(IllegalAddress|IllegalInstruction|InvalidPc|InvalidAddressSpace|LaunchFailure"
    r"|LaunchTimeOut|Assert|ECCUncorrectable|ECCNotCorrectable|NvlinkUncorrectable|HardwareStackError"
    r"|MisalignedAddress|ContextIsDestroyed|Unknown)\b"
    r"|(CUDA|HIP)_ERROR_(ILLEGAL_(ADDRESS|INSTRUCTION)|INVALID_(PC|ADDRESS_SPACE)|LAUNCH_(FAILED"
    r"|TIMEOUT)|ASSERT|ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE|HARDWARE_STACK_ERROR"
    r"|MISALIGNED_ADDRESS|CONTEXT_IS_DESTROYED|UNKNOWN)\b"
    r"|(UR_RESULT_ERROR|ZE_RESULT_ERROR|PI_ERROR|CL)_DEVICE_(LOST|NOT_AVAILABLE|REQUIRES_RESET)"
    r"|Level.Zero error\W{0,4}(0x)?7000000[16]|CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"
    r"|CL_INVALID_COMMAND_QUEUE|DXGI_ERROR_(DEVICE_(REMOVED|HUNG|RESET)|DRIVER_INTERNAL_ERROR)"
    r"|GPU Hang|Memory access fault by GPU|HSA_STATUS_ERROR_(EXCEPTION|MEMORY_\w+|ILLEGAL_\w+)"
    r"|CallbackError(SubmissionsIgnored|Hang|Timeout|PageFault|AccessRevoked|InnocentVictim)"
    r"|command buffer exited with error status"
    # In the words of ONNX Runtime and of TensorRT.
    r"|(CUDA|HIP) failure( at|:)? ?(214|220|700|702|709|710|71[4-9]|999)\b",
    re.IGNORECASE,
)
FORKED = re.compile(r"re-initialize \w+ in forked subprocess", re.IGNORECASE)
NO_DRIVER = re.compile(
    r"Found no NVIDIA driver|driver on your system is too old|driver initialization failed"
    r"|No (CUDA|HIP|XPU) (GPUs|devices) are available|no \w+-capable device"
    r"|CUDA driver version is insufficient|CUDA unknown error"
    r"|(CUDA|HIP|ROCm)-capable device(s|\(s\))? (is/are|are|is) busy or unavailable"
    r"|(CUDA|HIP) error: (initialization error|invalid device ordinal|system not yet initialized)"
    r"|(CUDA|HIP) error: (system has unsupported|forward compatibility|driver shutting down)"
    r"|shared object (initialization failed|symbol not found)"
    r"|(UR_RESULT_ERROR|ZE_RESULT_ERROR|PI_ERROR)_(UNINITIALIZED|DEVICE_NOT_FOUND|UNKNOWN)\b"
    r"|\bVK_ERROR_(INITIALIZATION_FAILED|INCOMPATIBLE_DRIVER)\b"
    r"|\b(hip|cuda)Error(NoDevice|InvalidDevice|InsufficientDriver|InitializationError"
    r"|NotInitialized|SharedObject(InitFailed|SymbolNotFound)|SystemNotReady"
    r"|SystemDriverMismatch|CompatNotSupportedOnDevice|DevicesUnavailable)\b"
    r"|\b(CUDA|HIP)_ERROR_(NO_DEVICE|INVALID_DEVICE|NOT_INITIALIZED|SHARED_OBJECT_\w+"
    r"|SYSTEM_NOT_READY|SYSTEM_DRIVER_MISMATCH|COMPAT_NOT_SUPPORTED_ON_DEVICE|DEVICE_UNAVAILABLE)\b"
    r"|\b(CUDA|HIP) failure( at|:)? ?(3|35|100|101|30[23]|80[234])\b",
    re.IGNORECASE,
)
NO_IMAGE = re.compile(
    r"no kernel image is available|(CUDA|HIP) error: invalid device function"
    r"|device kernel image is invalid|PTX was compiled with an unsupported toolchain"
    r"|(hip|cuda)Error(InvalidDeviceFunction|NoBinaryForGpu|NoKernelImageForDevice"
    r"|InvalidKernelImage|InvalidImage|InvalidPtx|UnsupportedPtxVersion)\b"
    r"|(CUDA|HIP)_ERROR_(NO_BINARY_FOR_GPU|INVALID_(PTX|IMAGE)|UNSUPPORTED_PTX_VERSION)\b"
    r"|(HIPBLAS|CUBLAS)_STATUS_ARCH_MISMATCH"
    r"|rocblas_status_arch_mismatch|TensileLibrary|initialize Tensile|Code object build failed"
    r"|(UR_RESULT_ERROR|ZE_RESULT_ERROR|PI_ERROR)_(INVALID_BINARY|INVALID_NATIVE_BINARY)"
    r"|(ZE_RESULT_ERROR|CL)_(MODULE_(BUILD|LINK)|BUILD_PROGRAM)_FAILURE"
    r"|Level.Zero error\W{0,4}(0x)?7000000[45]|\[GPU\] ProgramBuilder build failed"
    r"|\b(CUDA|HIP) failure( at|:)? ?(98|20[09]|218|222)\b"
    r"|\bHSA_STATUS_ERROR_INVALID_(ISA|CODE_OBJECT\w*)",
    re.IGNORECASE,
)
# What a library of the GPU's maker cannot do there. A wrong argument is the program's.
NO_LIBRARY = re.compile(
    r"\b(CUBLAS|CUDNN|HIPBLAS)_STATUS_"
    r"(NOT_INITIALIZED|INTERNAL_ERROR|EXECUTION_FAILED|MAPPING_ERROR|UNKNOWN"
    r"|NOT_SUPPORTED(?![^\n]*non-contiguous input))"
    r"|\bmiopenStatus(UnknownError|InternalError|NotInitialized|NotImplemented|GpuOperationsSkipped)"
    r"|\brocblas_status_(internal_error|not_implemented|invalid_handle)"
    r"|\b(MIOpen|rocBLAS|hipBLASLt) error\b(?!: Invalid value)"
    r"|\b(CU|HIP)FFT_(EXEC_FAILED|INTERNAL_ERROR)"
    r"|\bcould not (create|execute) a primitive\b(?! descriptor)|\bcould not create a memory object"
    r"|\bLevel.Zero error\b|The plugin has emitted a backend specific error"
    r"|CommandBufferCallbackError\w+|MTLCommandBufferError"
    r"|Error computing NN outputs|MILCompilerForANE|ANECCompile|com\.apple\.CoreML",
    re.IGNORECASE,
)
