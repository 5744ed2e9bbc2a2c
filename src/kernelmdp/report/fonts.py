"""The font of figures: Matplotlib's default font, reduced to the letters of names and numbers.

A PDF contains the letters that it uses. To extract them from a font with thousands of letters takes
longer than the drawing. Letters that the small font lacks come from the full one.
"""

import atexit
import functools
import logging
import pathlib
import shutil
import tempfile

#: The default font of Matplotlib.
FULL_FONT = "DejaVu Sans"
#: The name of the small font.
SMALL_FONT = "kernelmdp Sans"
#: The letters of the small font: Latin, Greek, punctuation, minus and infinity.
LETTERS = (*range(0x20, 0x250), *range(0x370, 0x400), *range(0x2000, 0x2070), 0x2212, 0x221E)


@functools.cache
def register_small_font() -> list[str]:
    """Make the small font, once in a process.

    Returns:
        Names for Matplotlib's ``font.register_small_font``, the small font first.
    """
    from fontTools import subset
    from matplotlib import font_manager

    logging.getLogger("fontTools.subset").setLevel(logging.ERROR)
    options = subset.Options(hinting=False, name_IDs=["*"])
    options.drop_tables += ["FFTM", "GDEF", "GPOS", "GSUB"]
    font = subset.load_font(font_manager.findfont(FULL_FONT), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=LETTERS)
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in (1, 4, 16):  # family, full name, preferred family
            record.string = SMALL_FONT
    # Matplotlib reads the file again for every figure. So it stays until the process ends.
    folder = tempfile.mkdtemp(prefix="kernelmdp-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = pathlib.Path(folder) / "letters.ttf"
    font.save(path)
    font_manager.fontManager.addfont(path)
    return [SMALL_FONT, FULL_FONT]
