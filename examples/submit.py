"""The command as a file, as spark-submit needs it: `spark-submit --master yarn submit.py audit ...`."""

import sys

from buscoupler.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
