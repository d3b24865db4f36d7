"""Our command as a file, which spark-submit wants: `spark-submit --master yarn submit.py audit ...`."""

import sys

from buscoupler.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
