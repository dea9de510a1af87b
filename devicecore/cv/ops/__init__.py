"""One folder for each concept of OpenCV's functions; see `devicecore.cv.catalog`.

A folder has up to four modules: ``torch`` (the kernels for every device of torch), ``triton`` (how
Triton's kernels are launched), ``kernels`` (those kernels) and ``tables`` (index and weight
tables as OpenCV computes them, without torch).
"""
