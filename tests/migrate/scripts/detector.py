# Written as people write for OpenCV.
# ruff: noqa: ANN001, ANN201, T201
# mypy: ignore-errors
"""Prepare photos for a detector: letterbox, blob, and boxes drawn on what was read."""

import argparse
import zlib
from pathlib import Path

import cv2
import numpy as np


def letterbox(img, new_shape=(320, 320), color=(114, 114, 114), auto=True, stride=32):
    shape = img.shape[:2]
    r = min(new_shape[0] / shape[0], new_shape[1] / shape[1])
    new_unpad = round(shape[1] * r), round(shape[0] * r)
    dw, dh = new_shape[1] - new_unpad[0], new_shape[0] - new_unpad[1]
    if auto:
        dw, dh = np.mod(dw, stride), np.mod(dh, stride)
    dw /= 2
    dh /= 2
    if shape[::-1] != new_unpad:
        img = cv2.resize(img, new_unpad, interpolation=cv2.INTER_LINEAR)
    top, bottom = round(dh - 0.1), round(dh + 0.1)
    left, right = round(dw - 0.1), round(dw + 0.1)
    img = cv2.copyMakeBorder(img, top, bottom, left, right, cv2.BORDER_CONSTANT, value=color)
    return img, r, (dw, dh)


def preprocess(img):
    boxed, ratio, pad = letterbox(img, auto=False)
    x = boxed[..., ::-1].transpose(2, 0, 1)
    x = np.ascontiguousarray(x, dtype=np.float32) / 255.0
    return x[None], ratio, pad


def scores(blob):
    """Stands for a network: how bright each of 8 x 8 cells is, and where the brightest are."""
    cells = blob[0].mean(axis=0).reshape(8, 40, 8, 40).mean(axis=(1, 3))
    best = np.argsort(cells, axis=None)[-3:]
    return cells, np.stack(np.unravel_index(best, cells.shape), axis=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    for path in sorted(options.folder.glob("*.png")):
        img = cv2.imread(str(path))
        blob, ratio, (dw, dh) = preprocess(img)
        other = cv2.dnn.blobFromImage(img, 1 / 255.0, (320, 320), swapRB=True, crop=False)
        cells, best = scores(blob)
        print(path.name, blob.shape, blob.dtype, zlib.crc32(blob), zlib.crc32(other))
        canvas = img.copy()
        for row, column in best:
            x1, y1 = int((column * 40 - dw) / ratio), int((row * 40 - dh) / ratio)
            x2, y2 = int(x1 + 40 / ratio), int(y1 + 40 / ratio)
            cv2.rectangle(canvas, (x1, y1), (x2, y2), (0, 255, 0), 2)
            label = f"{cells[row, column]:.3f}"
            cv2.putText(canvas, label, (x1, y1 - 4), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 255, 0), 1)
            print("  box", x1, y1, x2, y2, label)
        ok, png = cv2.imencode(".png", canvas)
        print(ok, zlib.crc32(png), zlib.crc32(img))


if __name__ == "__main__":
    main()
