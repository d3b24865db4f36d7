"""Words that users of other programs try as commands, and the commands that are meant. Pure."""

from typing import Final

MEANT: Final = {
    "start": "run", "serve": "run", "up": "run", "daemon": "run", "gateway": "run",
    "restart": "reload", "refresh": "reload", "apply": "reload",
    "validate": "check", "verify": "check", "lint": "check", "test": "check",
    "compare": "diff", "plan": "diff", "rollout": "deploy", "roll-out": "deploy", "push": "deploy",
    "revert": "rollback", "undo": "rollback", "back": "rollback",
    "tls": "cert", "certificate": "cert", "certificates": "cert", "ca": "cert",
    "status": "top", "ps": "top", "list": "top", "ls": "top", "stats": "top", "info": "top", "health": "top",
    "ready": "top",
    "init": "create", "new": "create", "generate": "create",
    "graph": "show", "draw": "show", "picture": "show", "view": "show", "svg": "show",
    "trace": "explain", "route": "explain", "why": "explain", "path": "explain",
    "pub": "send", "publish": "send", "write": "send", "emit": "send", "post": "send",
    "sub": "recv", "subscribe": "recv", "listen": "recv", "receive": "recv", "tail": "recv", "read": "recv",
    "bench": "traffic", "generator": "traffic", "flood": "traffic", "ack": "alarms", "acknowledge": "alarms",
    "record": "capture", "dump": "capture", "tcpdump": "capture", "replay": "capture", "export": "capture",
    "get": "values", "hash": "tokens", "token": "tokens", "keygen": "key", "genkey": "key",
    "discover": "find", "scan": "find", "browse": "find",
    "services": "client", "call": "client", "remove": "uninstall", "switch": "device", "bus": "device",
    "jobs": "pipeline", "spark": "pipeline", "bash": "completion", "zsh": "completion",
}  # fmt: skip
"""The command that does what a word says elsewhere, by that word."""

_SIDE: Final = "; it is no command but a side of a bridge in the topology: see docs/topology.md, or create"

TOLD: Final = {
    "stop": "; a process ends by Ctrl-C or SIGTERM, a service by `systemctl stop`",
    "kill": "; a process ends by Ctrl-C or SIGTERM, a service by `systemctl stop`",
    "help": "; write buscoupler --help, or buscoupler COMMAND --help",
    "man": "; write man buscoupler-COMMAND, or buscoupler COMMAND --help",
    "version": "; write buscoupler --version",
    **dict.fromkeys(
        ("web", "page", "dashboard", "metrics", "prometheus", "history", "ui"),
        "; it is part of run: `status:` of the topology gives the page and the metrics an address",
    ),
    "config": "; the topology is a file: create writes one, check finds what is wrong with it",
    **dict.fromkeys(
        (
            "mqtt",
            "modbus",
            "queries",
            "scpi",
            "canopen",
            "can",
            "uart",
            "serial",
            "rs485",
            "i2c",
            "tcp",
            "udp",
            "multicast",
            "ieee802154",
            "dbc",
            "j1939",
            "nmea",
            "mavlink",
            "cyphal",
            "raw",
            "lines",
            "xbee",
            "vedirect",
            "p1",
            "dsmr",
            "bytes",
            "json",
            "mosquitto",
            "candump",
        ),
        _SIDE,
    ),
}
"""The words to write instead of one that no command stands for, by that one."""
