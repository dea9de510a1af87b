"""Kernels that Triton compiles, for CUDA and ROCm; nothing here is imported without Triton."""
