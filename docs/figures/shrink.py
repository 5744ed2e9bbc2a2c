"""Figures as small files: 64 colours are enough for lines and bands.

python docs/figures/shrink.py docs/figures/*.png
"""

import pathlib
import sys

from PIL import Image


def shrunk(path: pathlib.Path) -> None:
    """Write the picture again with a palette."""
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        shrunk(pathlib.Path(name))
