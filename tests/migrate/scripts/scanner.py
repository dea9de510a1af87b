# Written as people write for OpenCV.
# ruff: noqa: ANN001, ANN201, N806, PTH118, RUF059, T201, TRY003
# mypy: ignore-errors
"""Scan a page out of a photo: find its corners, look at it from above, make it black and white."""

import sys
import zlib
from os.path import join

import cv2
import numpy as np
from cv2 import warpPerspective


def order_points(pts):
    rect = np.zeros((4, 2), dtype="float32")
    s = pts.sum(axis=1)
    rect[0], rect[2] = pts[np.argmin(s)], pts[np.argmax(s)]
    d = np.diff(pts, axis=1)
    rect[1], rect[3] = pts[np.argmin(d)], pts[np.argmax(d)]
    return rect


def four_point_transform(image, pts):
    rect = order_points(pts)
    tl, tr, br, bl = rect
    width = max(int(np.linalg.norm(br - bl)), int(np.linalg.norm(tr - tl)))
    height = max(int(np.linalg.norm(tr - br)), int(np.linalg.norm(tl - bl)))
    dst = np.array([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], "float32")
    M = cv2.getPerspectiveTransform(rect, dst)
    return warpPerspective(image, M, (width, height))


def photographed(page):
    """A page that lies on a dark table, seen from the side."""
    h, w = page.shape[:2]
    page = cv2.copyMakeBorder(page, 20, 20, 20, 20, cv2.BORDER_CONSTANT, value=(235, 240, 240))
    src = np.float32([[0, 0], [w + 40, 0], [w + 40, h + 40], [0, h + 40]])
    dst = np.float32([[70, 60], [500, 40], [560, 330], [40, 360]])
    table = np.full((400, 600, 3), (40, 55, 60), np.uint8)
    M = cv2.getPerspectiveTransform(src, dst)
    warpPerspective(page, M, (600, 400), table, cv2.INTER_LINEAR, cv2.BORDER_TRANSPARENT)
    return table


def corners_of(image):
    gray = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    gray = cv2.GaussianBlur(gray, (5, 5), 0)
    edged = cv2.Canny(gray, 75, 200)
    edged = cv2.dilate(edged, None, iterations=1)
    contours, _ = cv2.findContours(edged, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    for c in sorted(contours, key=cv2.contourArea, reverse=True)[:5]:
        approx = cv2.approxPolyDP(c, 0.02 * cv2.arcLength(c, True), True)
        if len(approx) == 4:
            return approx.reshape(4, 2)
    raise SystemExit("no page found")


def scan(image):
    ratio = image.shape[0] / 300.0
    small = cv2.resize(image, (int(image.shape[1] / ratio), 300), interpolation=cv2.INTER_AREA)
    warped = four_point_transform(image, corners_of(small) * ratio)
    gray = cv2.cvtColor(warped, cv2.COLOR_BGR2GRAY)
    background = cv2.medianBlur(cv2.dilate(gray, np.ones((7, 7), np.uint8)), 21)
    flat = 255 - cv2.absdiff(gray, background)
    flat = cv2.normalize(flat, None, 0, 255, cv2.NORM_MINMAX, cv2.CV_8UC1)
    binary = cv2.adaptiveThreshold(
        flat, 255, cv2.ADAPTIVE_THRESH_GAUSSIAN_C, cv2.THRESH_BINARY_INV, 21, 15
    )
    kernel = cv2.getStructuringElement(cv2.MORPH_RECT, (3, 1))
    binary = cv2.morphologyEx(binary, cv2.MORPH_CLOSE, kernel)
    return warped, cv2.morphologyEx(binary, cv2.MORPH_OPEN, np.ones((2, 2), np.uint8))


def main():
    photo = photographed(cv2.imread(join(sys.argv[1], "page.png")))
    print(photo.shape, zlib.crc32(photo))
    warped, binary = scan(photo)
    print(warped.shape, zlib.crc32(warped), binary.dtype, np.unique(binary), zlib.crc32(binary))
    lines = cv2.dilate(binary, cv2.getStructuringElement(cv2.MORPH_RECT, (25, 3)))
    count, labels, stats, _ = cv2.connectedComponentsWithStats(lines)
    print(count, stats[stats[:, cv2.CC_STAT_AREA].argsort()[-5:]].tolist())
    skew = cv2.minAreaRect(cv2.findNonZero(binary))
    print([round(value, 4) for value in (*skew[0], *skew[1], skew[2])])


if __name__ == "__main__":
    main()
