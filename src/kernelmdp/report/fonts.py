"""The font of figures: Matplotlib's own, cut once to the letters that names and numbers use.

A PDF holds the letters it needs, and to cut them out of a font with thousands takes longer than
all drawing. What is not in the smaller font is taken from the whole one.
"""

import atexit
import functools
import logging
import pathlib
import shutil
import tempfile

WHOLE, SMALL = "DejaVu Sans", "kernelmdp Sans"
#: Latin, Greek, punctuation, minus and infinity.
LETTERS = (*range(0x20, 0x250), *range(0x370, 0x400), *range(0x2000, 0x2070), 0x2212, 0x221E)


@functools.cache
def family() -> list[str]:
    """Names for ``font.family``, the small font first; made once a process."""
    from fontTools import subset
    from matplotlib import font_manager

    logging.getLogger("fontTools.subset").setLevel(logging.ERROR)
    options = subset.Options(hinting=False, name_IDs=["*"])
    options.drop_tables += ["FFTM", "GDEF", "GPOS", "GSUB"]
    font = subset.load_font(font_manager.findfont(WHOLE), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=LETTERS)
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in (1, 4, 16):  # family, full name, preferred family
            record.string = SMALL
    # Matplotlib reads it again for every figure: the folder stays until the process ends.
    folder = tempfile.mkdtemp(prefix="kernelmdp-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    place = pathlib.Path(folder) / "letters.ttf"
    font.save(place)
    font_manager.fontManager.addfont(place)
    return [SMALL, WHOLE]
