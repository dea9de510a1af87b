# Written as people write for OpenCV.
# ruff: noqa: ANN001, ANN201, B905, PTH118, T201
# mypy: ignore-errors
"""Grade photos: equalised histograms, curves of colours, warm and cold, sharpened."""

import sys
import zlib
from os.path import join

import cv2
import numpy as np


def said(name, image):
    print(f"{name:12} {image.shape} {image.dtype} {zlib.crc32(np.ascontiguousarray(image)):08x}")


def curve(points):
    xs, ys = zip(*points)
    return np.interp(np.arange(256), xs, ys).round().astype(np.uint8)


def equalized(bgr):
    ycrcb = cv2.cvtColor(bgr, cv2.COLOR_BGR2YCrCb)
    y, cr, cb = cv2.split(ycrcb)
    cv2.equalizeHist(y, y)
    return cv2.cvtColor(cv2.merge((y, cr, cb)), cv2.COLOR_YCrCb2BGR)


def clahe(bgr):
    lab = cv2.cvtColor(bgr, cv2.COLOR_BGR2LAB)
    lab[..., 0] = cv2.createCLAHE(clipLimit=2.0, tileGridSize=(8, 8)).apply(lab[..., 0])
    return cv2.cvtColor(lab, cv2.COLOR_LAB2BGR)


def warmed(bgr):
    up = curve([(0, 0), (64, 80), (128, 150), (192, 210), (255, 255)])
    down = curve([(0, 0), (64, 50), (128, 110), (192, 180), (255, 255)])
    b, g, r = cv2.split(bgr)
    toned = cv2.merge([cv2.LUT(b, down), g, cv2.LUT(r, up)])
    h, s, v = cv2.split(cv2.cvtColor(toned, cv2.COLOR_BGR2HSV))
    return cv2.cvtColor(cv2.merge([h, cv2.LUT(s, up), v]), cv2.COLOR_HSV2BGR)


def graded(bgr):
    gamma = np.array([((i / 255.0) ** (1 / 1.4)) * 255 for i in range(256)]).astype("uint8")
    tables = np.dstack([gamma, gamma[::-1], gamma])
    sepia = np.array([[0.131, 0.534, 0.272], [0.168, 0.686, 0.349], [0.189, 0.769, 0.393]])
    toned = cv2.transform(bgr, sepia)
    blurred = cv2.GaussianBlur(bgr, (0, 0), 3)
    return {
        "gamma": cv2.LUT(bgr, gamma),
        "solarised": cv2.LUT(bgr, tables.reshape(1, 256, 3)),
        "sepia": toned,
        "sharp": cv2.addWeighted(bgr, 1.5, blurred, -0.5, 0),
        "contrast": cv2.convertScaleAbs(bgr, alpha=1.3, beta=-20),
        "vignette": cv2.multiply(bgr, vignette(bgr.shape), dtype=cv2.CV_8U),
        "edges": cv2.filter2D(bgr, -1, np.array([[-1, -1, -1], [-1, 8, -1], [-1, -1, -1]])),
    }


def vignette(shape):
    rows, cols = shape[:2]
    kernel = cv2.getGaussianKernel(rows, rows / 3) @ cv2.getGaussianKernel(cols, cols / 3).T
    return np.dstack([(kernel / kernel.max()).astype(np.float32)] * 3)


def main():
    for name in ("astronaut", "chelsea"):
        bgr = cv2.imread(join(sys.argv[1], name + ".png"))
        small = cv2.resize(bgr, (256, 192), interpolation=cv2.INTER_AREA)
        before = zlib.crc32(small)
        said("equalised", equalized(small))
        said("clahe", clahe(small))
        said("warm", warmed(small))
        for what, image in graded(small).items():
            said(what, image)
        hist = [cv2.calcHist([each], [0], None, [64], [0, 256]) for each in cv2.split(small)]
        other = cv2.calcHist([small], [0, 1, 2], None, [8, 8, 8], [0, 256] * 3)
        other = cv2.normalize(other, other).flatten()
        print([int(h.argmax()) for h in hist], other.argsort()[-4:], f"{other.max():.6f}")
        print(f"{cv2.compareHist(hist[0], hist[2], cv2.HISTCMP_CORREL):.9f}")
        assert zlib.crc32(small) == before


if __name__ == "__main__":
    main()
