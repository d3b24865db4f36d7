"""A program that waits until it is killed, as the rehearsal of a server that is found running."""

import signal

if __name__ == "__main__":
    signal.pause()
