# Written as people write for OpenCV.
# ruff: noqa: ANN001, ANN201, B905, N806, PTH118, T201
# mypy: ignore-errors
"""Find coins that look like one of them, at several sizes and turned, and count all of them."""

import sys
import zlib
from os.path import join

import cv2 as cv
import numpy as np


def found(image, template, least):
    result = cv.matchTemplate(image, template, cv.TM_CCOEFF_NORMED)
    _, best, _, place = cv.minMaxLoc(result)
    peaks = cv.dilate(result, np.ones((15, 15)))
    rows, cols = np.where((result == peaks) & (result >= least))
    return best, place, sorted(zip(cols.tolist(), rows.tolist()))


def search(image, template):
    for scale in (0.8, 1.0, 1.25):
        size = round(template.shape[1] * scale), round(template.shape[0] * scale)
        how = cv.INTER_AREA if scale < 1 else cv.INTER_LINEAR
        scaled = cv.resize(template, size, interpolation=how)
        for turned, name in (
            (scaled, "as it is"),
            (cv.flip(scaled, 1), "mirrored"),
            (cv.rotate(scaled, cv.ROTATE_90_CLOCKWISE), "turned"),
        ):
            best, place, places = found(image, turned, 0.6)
            yield scale, name, round(best, 4), place, places


def rotated(image, angle):
    h, w = image.shape[:2]
    M = cv.getRotationMatrix2D((w / 2, h / 2), angle, 1.0)
    return cv.warpAffine(image, M, (w, h), flags=cv.INTER_LINEAR, borderMode=cv.BORDER_REPLICATE)


def count(image):
    blur = cv.medianBlur(image, 5)
    level, thresh = cv.threshold(blur, 0, 255, cv.THRESH_BINARY + cv.THRESH_OTSU)
    opening = cv.morphologyEx(thresh, cv.MORPH_OPEN, np.ones((3, 3), np.uint8), iterations=2)
    sure = cv.dilate(opening, np.ones((3, 3), np.uint8), iterations=3)
    distances = cv.distanceTransform(opening, cv.DIST_L2, 5)
    _, middle = cv.threshold(distances, 0.5 * distances.max(), 255, cv.THRESH_BINARY)
    unknown = cv.subtract(sure, np.uint8(middle))
    number, _ = cv.connectedComponents(np.uint8(middle))
    return level, number, cv.countNonZero(unknown)


def edges(image):
    dx = cv.Sobel(image, cv.CV_16S, 1, 0, ksize=3)
    dy = cv.Sobel(image, cv.CV_16S, 0, 1, ksize=3)
    both = cv.addWeighted(cv.convertScaleAbs(dx), 0.5, cv.convertScaleAbs(dy), 0.5, 0)
    sharp = cv.Laplacian(image, cv.CV_64F).var()
    return both, sharp


def main():
    coins = cv.imread(join(sys.argv[1], "coins.png"), cv.IMREAD_GRAYSCALE)
    template = coins[20:80, 230:295]
    for line in search(coins, template):
        print(*line)
    both, sharp = edges(rotated(coins, 12))
    print(zlib.crc32(both), f"{sharp:.6f}", *count(coins))
    color = cv.applyColorMap(both, cv.COLORMAP_JET)
    print(color.shape, zlib.crc32(color))


if __name__ == "__main__":
    main()
