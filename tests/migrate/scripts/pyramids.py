# Written as people write for OpenCV.
# ruff: noqa: ANN001, ANN201, B905, E741, PTH118, RUF059, T201
# mypy: ignore-errors
"""Blend two photos by their Laplacian pyramids, and look for a small one in a large one."""

import sys
import zlib
from os.path import join

import cv2
import numpy as np


def pyramid(image, levels=5):
    gaussian = [image]
    for _ in range(levels):
        gaussian.append(cv2.pyrDown(gaussian[-1]))
    laplacian = [gaussian[-1]]
    for i in range(levels, 0, -1):
        size = gaussian[i - 1].shape[1], gaussian[i - 1].shape[0]
        laplacian.append(cv2.subtract(gaussian[i - 1], cv2.pyrUp(gaussian[i], dstsize=size)))
    return laplacian


def blend(left, right):
    joined = []
    for l, r in zip(pyramid(left), pyramid(right)):
        rows, cols, _ = l.shape
        joined.append(np.hstack((l[:, 0 : cols // 2], r[:, cols // 2 :])))
    result = joined[0]
    for each in joined[1:]:
        result = cv2.add(cv2.pyrUp(result, dstsize=(each.shape[1], each.shape[0])), each)
    return result


def mixed(left, right, mask):
    """The same in floats, with a mask that is blurred on each level."""
    a, b = pyramid(np.float32(left)), pyramid(np.float32(right))
    masks = [cv2.cvtColor(mask, cv2.COLOR_GRAY2BGR).astype(np.float32) / 255]
    for _ in a[1:]:
        masks.append(cv2.pyrDown(masks[-1]))
    levels = [x * m + y * (1 - m) for x, y, m in zip(a, b, masks[::-1])]
    result = levels[0]
    for each in levels[1:]:
        result = cv2.pyrUp(result, dstsize=each.shape[1::-1]) + each
    return np.clip(result, 0, 255).astype(np.uint8)


def main():
    left = cv2.imread(join(sys.argv[1], "astronaut.png"))[:300, :333]
    right = cv2.resize(cv2.imread(join(sys.argv[1], "coffee.png")), (333, 300))
    result = blend(left, right)
    direct = np.hstack((left[:, : 333 // 2], right[:, 333 // 2 :]))
    print(result.shape, result.dtype, result.flags.c_contiguous, zlib.crc32(result))
    print(f"{cv2.PSNR(result, direct):.6f}", f"{cv2.norm(result, direct, cv2.NORM_L1):.1f}")
    mask = np.zeros((300, 333), np.uint8)
    cv2.circle(mask, (166, 150), 90, 255, -1)
    soft = mixed(left, right, mask)
    print(soft.shape, zlib.crc32(soft), [round(each, 4) for each in cv2.mean(soft, mask=mask)])
    print([(each.shape, int(each.astype(int).sum())) for each in pyramid(left)])


if __name__ == "__main__":
    main()
