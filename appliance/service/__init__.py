"""A gateway as a service of systemd, for `buscoupler install` and `uninstall`.

`plan` finds what a gateway's part of a topology needs of the system, `texts` writes that as the files of
systemd and udev, and `files` puts them in place or takes them back.
"""
