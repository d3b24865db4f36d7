"""A gateway as a service of systemd, for `buscoupler install` and `uninstall`.

`plan` finds the needs of a gateway's part of a topology, `texts` writes them as files of systemd and udev,
and `files` puts these in place or takes them back. `readable` tells what its user could not read.
"""
