"""The text of the files of systemd and udev for a service. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from appliance.service.plan import Plan
from bus.machine.real_time import PRIORITY

MARK: Final = "# Written by `buscoupler install`, from"
"""The beginning of the first line of each file: only such files are replaced and removed."""
_MAJORS: Final = {"ttyS": 4, "i2c-": 89, "ttyACM": 166, "ttyUSB": 188, "ttyAMA": 204}
_OFFSETS: Final = {"ttyS": 64, "ttyAMA": 64}  # of the minor number of the first one
_CONNECTED: Final = re.compile(r"/dev/serial/by-(id|path)/.+")
_NUMBERED: Final = re.compile(r"/dev/([a-zA-Z0-9]*?[a-zA-Z]-?)(\d+)")


def files_of(plan: Plan) -> dict[str, str]:
    """Return the text of each file of a plan by its path. Rules of udev are there if it has devices."""
    name, rules = plan.name, "".join(f"{line}\n" for line in _rules(plan))
    made = {
        f"/etc/systemd/system/{name}.service": _UNIT.format(mark=_mark(plan), **_words(plan)),
        f"/etc/sysusers.d/{name}.conf": _SYSUSERS.format(mark=_mark(plan), **_words(plan)),
        f"/etc/tmpfiles.d/{name}.conf": _mark(plan) + "".join(f"{line}\n" for line in _tmpfiles(plan)),
    }
    return made | (
        {f"/etc/udev/rules.d/99-{name}.rules": _UDEV.format(mark=_mark(plan), rules=rules)} if rules else {}
    )


def paths_of(name: str) -> list[str]:
    """Return the paths of all files that a service of this name can have."""
    units = [f"/etc/systemd/system/{name}.service", f"/etc/sysusers.d/{name}.conf"]
    return [*units, f"/etc/tmpfiles.d/{name}.conf", f"/etc/udev/rules.d/99-{name}.rules"]


def _mark(plan: Plan) -> str:
    return f"{MARK} {plan.file}. Change that file, and install again.\n"


def quoted(word: str) -> str:
    """Return a word of a command line as systemd reads it back. The word is one that a plan may hold."""
    return path_text(word).replace("$", "$$")


def path_text(path: str) -> str:
    """Return a path as settings of systemd read it back, where `$` is a letter like others."""
    plain = path.replace("%", "%%")
    return plain if re.fullmatch(r"[\w./:@%+,=$-]+", plain) else f'"{plain}"'


def _words(plan: Plan) -> dict[str, str]:
    program, *words = plan.command
    command = " ".join([path_text(program), *map(quoted, words)])
    file, gateway = quoted(plan.file), quoted(plan.gateway)
    capability = "CAP_NET_BIND_SERVICE" if plan.low_ports else ""
    real_time = " --real-time" if plan.real_time else ""
    return {
        "name": plan.name,
        "what": f"gateway {plan.gateway} of {plan.topology}".replace("%", "%%"),
        "start": f"{command} run {file} --gateway {gateway}{real_time}",
        "reload": f"{command} reload {file} --gateway {gateway}",
        "watchdog": str(plan.watchdog_s),
        "families": " ".join(("AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", *plan.families)),
        "capability": capability,
        "real_time_limit": f"LimitRTPRIO={PRIORITY}\n" if plan.real_time else "",
        "restrict_real_time": "no" if plan.real_time else "yes",
        "devices": "\n".join(_devices(plan)),
        "writable": "".join(f"ReadWritePaths=-{path_text(path)}\n" for path in _foreign(plan)),
    }


def _devices(plan: Plan) -> Iterator[str]:
    """Yield the lines that let the service open its devices, and no other."""
    if not plan.devices:
        yield "PrivateDevices=yes"
    for path in plan.devices:
        yield f"# {path}"
        yield from (f"DeviceAllow={node} rw" for node in nodes(path))


def nodes(path: str) -> tuple[str, ...]:
    """Return the specifiers of DeviceAllow for a device, which may be plugged in later: number or driver.

    A USB adapter with a name by its serial number is allowed as any device of its driver. Paths of other
    names must exist when the service starts.
    """
    found = _NUMBERED.fullmatch(path)
    if found is not None and found[1] in _MAJORS:
        return (f"/dev/char/{_MAJORS[found[1]]}:{_OFFSETS.get(found[1], 0) + int(found[2])}",)
    if _CONNECTED.fullmatch(path):
        return ("char-ttyUSB", "char-ttyACM")
    return ("char-gpiochip",) if re.fullmatch(r"/dev/gpiochip\d+", path) else (path_text(path),)


def _foreign(plan: Plan) -> list[str]:
    """Return the directories that systemd does not make for the service, so tmpfiles must."""
    own = (f"/var/lib/{plan.name}", f"/run/{plan.name}")
    return [path for path in plan.directories if not f"{path}/".startswith(tuple(f"{one}/" for one in own))]


def _tmpfiles(plan: Plan) -> Iterator[str]:
    yield f"d /etc/{plan.name} 0750 root {plan.name} -"
    yield from (f"z {path_text(_itself(path))} 0640 root {plan.name} -" for path in plan.secrets)
    yield from (f"d {path_text(path)} 0750 {plan.name} {plan.name} -" for path in _foreign(plan))


def _itself(path: str) -> str:
    """Return the pattern, as in a shell, that a path alone matches."""
    return re.sub(r"([*?\[])", r"[\1]", path)


def _rules(plan: Plan) -> Iterator[str]:
    """Yield a rule for each device: it belongs to the service's group, and no modem is looked for there."""
    for path in plan.devices:
        found = _NUMBERED.fullmatch(path)
        named = _itself(path.removeprefix("/dev/")).replace("|", "?")  # udev cuts there first
        match = "KERNEL" if found is not None else "SYMLINK"
        yield f'{match}=="{named}", GROUP="{plan.name}", MODE="0660", ENV{{ID_MM_PORT_IGNORE}}="1"'


_SYSUSERS: Final = """\
{mark}u {name} - "buscoupler gateway" /var/lib/{name}
"""

_UDEV: Final = """\
{mark}# These devices belong to the service's group, so other accounts cannot disturb them.
#
# A USB adapter can get another number at each start. Its name in /dev/serial/by-id stays: use that in the
# topology. For adapters without a serial number, make a name for the socket that it is plugged into, and use
# /dev/sensor in the topology; `udevadm info /dev/ttyUSB0` shows the values:
#   SUBSYSTEM=="tty", KERNELS=="1-1.2", SYMLINK+="sensor"
{rules}"""

_UNIT: Final = """\
{mark}[Unit]
Description=buscoupler: {what}
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={start}
ExecReload={reload}
Restart=always
RestartSec=2
RestartPreventExitStatus=2
WatchdogSec={watchdog}
TimeoutStopSec=20
OOMPolicy=continue
LimitNOFILE=65536
LimitCORE=0
{real_time_limit}
User={name}
Group={name}
UMask=0027
RuntimeDirectory={name}
RuntimeDirectoryMode=0700
StateDirectory={name}
StateDirectoryMode=0750
WorkingDirectory=/var/lib/{name}

AmbientCapabilities={capability}
CapabilityBoundingSet={capability}
NoNewPrivileges=yes
ProtectSystem=strict
{writable}ProtectHome=yes
PrivateMounts=yes
PrivateTmp=yes
DevicePolicy=closed
{devices}
ProtectProc=invisible
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RemoveIPC=yes
RestrictAddressFamilies={families}
RestrictNamespaces=yes
RestrictRealtime={restrict_real_time}
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
# limits of open files, the idle priority of a tap's writer, and real-time priority of the event loop
SystemCallFilter=prlimit64 setrlimit sched_setscheduler

[Install]
WantedBy=multi-user.target
"""
