"""Our command as a file, for spark-submit, which runs no other: `spark-submit --master yarn submit.py audit ...`."""

import sys

from appliance.cli import main

if __name__ == "__main__":
    sys.exit(main())
