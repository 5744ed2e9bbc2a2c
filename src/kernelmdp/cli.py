"""The command line, for ``python -m kernelmdp.cli``. It lives in the package ``kmdp``."""

from kmdp import main

if __name__ == "__main__":
    main()
