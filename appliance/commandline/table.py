"""The table of commands: parsers, `--help`, the man pages and docs/commands.md are made from its records."""

from typing import Final, NamedTuple


class Command(NamedTuple):
    """A command. `module` has `arguments(parser)` and `run(options) -> int`, and `help` is one line.

    `page` of docs/ says more, if it is not empty. `examples` are command lines. `problem` says when the exit
    status is 1, besides what holds for every command: something that was asked for cannot be done.
    """

    module: str
    page: str
    help: str
    examples: tuple[str, ...]
    problem: str = ""


_IN: Final = "appliance.commands"

COMMANDS: Final = {
    "run": Command(
        f"{_IN}.run",
        "operations.md",
        "run a gateway's part of a topology",
        ("buscoupler run plant.yaml --gateway gw-a", "buscoupler run plant.yaml --test --seconds 20"),
        "an account does not balance at the end; with --test, also if nothing crossed",
    ),
    "reload": Command(
        f"{_IN}.reload",
        "operations.md#change-a-running-gateway",
        "let running gateways apply their changed files",
        ("buscoupler reload plant.yaml",),
        "a file was refused, a new link could not be opened, a gateway did not answer, or none runs the file",
    ),
    "check": Command(
        f"{_IN}.check",
        "topology.md",
        "find what is wrong with a topology, before it starts",
        ("buscoupler check plant.yaml", "buscoupler check plant.yaml --here --gateway gw-a"),
        "there is an error; warnings and notes do not count",
    ),
    "diff": Command(
        f"{_IN}.diff",
        "operations.md#what-a-reload-would-change",
        "show what a reload would change, from one topology to another",
        ("buscoupler diff plant.yaml plant-new.yaml",),
        "a reload would change something; it is 2 for a file with errors",
    ),
    "deploy": Command(
        f"{_IN}.deploy",
        "operations.md#roll-out",
        "bring a topology to running gateways over SSH, one first",
        ("buscoupler deploy plant.yaml", "buscoupler deploy plant.yaml --gateway gw-a=root@10.0.0.11 --yes"),
        "a gateway refused the file, or was not well with it: then all have their former file",
    ),
    "rollback": Command(
        f"{_IN}.rollback",
        "operations.md#roll-out",
        "let gateways go back from the last roll-out",
        ("buscoupler rollback plant.yaml",),
        "a gateway did not go back",
    ),
    "install": Command(
        f"{_IN}.install",
        "install.md#service",
        "make a gateway a hardened service of systemd",
        (
            "buscoupler install /etc/buscoupler/plant.yaml --gateway gw-a",
            "buscoupler install /etc/buscoupler/plant.yaml --dry-run",
        ),
    ),
    "uninstall": Command(
        f"{_IN}.uninstall", "install.md#service", "take back what install wrote", ("buscoupler uninstall",)
    ),
    "show": Command(
        f"{_IN}.show",
        "status.md",
        "draw a topology",
        (
            "buscoupler show plant.yaml",
            "buscoupler show plant.yaml --svg > plant.svg",
            "buscoupler show plant.yaml --live",
        ),
        "no gateway answers with --live",
    ),
    "explain": Command(
        f"{_IN}.explain",
        "operations.md#where-would-a-frame-go",
        "say where a frame would go, and what would stop or delay it",
        ("buscoupler explain fridge/temp plant.yaml --from can0",),
        "the frame goes out nowhere; with --live, also if only buses and bridges that were watched got it",
    ),
    "create": Command(
        f"{_IN}.create",
        "operations.md#a-first-file",
        "write a topology from answers and what is plugged in",
        (
            "buscoupler create plant.yaml",
            "buscoupler create plant.yaml --yes --join 'uart:/dev/ttyUSB0?baud=9600'",
        ),
    ),
    "schema": Command(
        f"{_IN}.schema",
        "topology.md",
        "print the JSON Schema of topologies, for editors",
        ("buscoupler schema --path",),
    ),
    "completion": Command(
        f"{_IN}.completion",
        "",
        "print the completion script of a shell",
        ('eval "$(buscoupler completion bash)"',),
    ),
    "demo": Command(
        f"{_IN}.demo",
        "tutorial.md#1-the-demo",
        "run buses, media and a bridge, without hardware and root",
        ("buscoupler demo --seconds 2 --no-capture",),
        "a frame did not reach a receiver exactly once, or a ledger does not balance",
    ),
    "device": Command(
        f"{_IN}.device",
        "tutorial.md#2-one-bus-two-programs",
        "run a raw device: a bus for all who connect, in one line",
        ("buscoupler device tcp://127.0.0.1:5555 ipc:///tmp/bus.sock",),
    ),
    "broker": Command(
        f"{_IN}.broker",
        "tmq.md",
        "run a TMQ broker: clients publish and subscribe by pattern",
        ("buscoupler broker tcp://127.0.0.1:9942",),
    ),
    "syndicate": Command(
        f"{_IN}.syndicate",
        "syndication.md",
        "run a broker whose clients subscribe by queries",
        ("buscoupler syndicate tcp://127.0.0.1:4444",),
    ),
    "catalog": Command(
        f"{_IN}.catalog",
        "dbp.md",
        "run a catalog: services register, clients find them by name",
        ("buscoupler catalog",),
    ),
    "service": Command(
        f"{_IN}.service",
        "dbp.md",
        "run a service that registers with a catalog, to try things",
        ("buscoupler service thermometer --catalog tcp://127.0.0.1:5246 --publish 1",),
    ),
    "client": Command(
        f"{_IN}.client",
        "dbp.md",
        "list the services of a catalog, ask one, or hear what it publishes",
        ("buscoupler client", "buscoupler client thermometer echo hello"),
    ),
    "monitor": Command(
        f"{_IN}.monitor",
        "dbp.md#monitor-and-mirrors",
        "show which services of a catalog are alive, or what passes at a socket of one of them",
        ("buscoupler monitor", "buscoupler monitor thermometer --count 10"),
    ),
    "simulate": Command(
        f"{_IN}.simulate",
        "simulator.md#a-whole-plant",
        "run all gateways of a topology in virtual time, with traffic and faults",
        ("buscoupler simulate plant.yaml --traffic can0=motor@10 --at 'fail gw-a@3'",),
        "no message of the traffic was heard anywhere else",
    ),
    "find": Command(
        f"{_IN}.find",
        "dbp.md#beacons",
        "list what announces itself on the LAN: catalogs, buses, brokers",
        ("buscoupler find --seconds 5",),
        "nothing announced itself",
    ),
    "query": Command(
        f"{_IN}.query",
        "syndication.md",
        "ask a syndication broker for producers, or the values of a key",
        ("buscoupler query tcp://127.0.0.1:4444 'Room = \"410\"'",),
    ),
    "values": Command(
        f"{_IN}.values",
        "values.md",
        "show the newest frame of each pattern that a bus remembers",
        ("buscoupler values tcp://127.0.0.1:5555 --pattern fridge",),
        "an answer did not come, or is not complete",
    ),
    "send": Command(
        f"{_IN}.send",
        "tutorial.md#2-one-bus-two-programs",
        "send messages to a bus or any medium",
        (
            "buscoupler send tcp://127.0.0.1:5555 fridge/temp --data 21.5",
            "buscoupler send 'uart:/dev/ttyUSB0?baud=115200' motor/speed --data 1500",
        ),
        "no peer was there in time, or a message was dropped",
    ),
    "recv": Command(
        f"{_IN}.recv",
        "tutorial.md#2-one-bus-two-programs",
        "show the messages of a bus or any medium",
        ("buscoupler recv tcp://127.0.0.1:5555 --names plant.yaml", "buscoupler recv 'can:can0?node=42'"),
        "--count was not reached in time; with --gaps, also if a number is missing or came twice",
    ),
    "capture": Command(
        f"{_IN}.capture",
        "capture.md",
        "record a bus or medium; export captures, or send them again",
        (
            "buscoupler capture tcp://127.0.0.1:5555 --pcapng bus.pcapng",
            "buscoupler capture export capture bus.pcapng",
            "buscoupler capture replay capture tcp://127.0.0.1:5555",
        ),
        "nothing came, or a message came too fast to be recorded",
    ),
    "journal": Command(
        f"{_IN}.journal",
        "durable.md",
        "list, verify, export, empty or send the journal of a durable trunk",
        (
            "buscoupler journal /var/lib/buscoupler/trunk",
            "buscoupler journal send /var/lib/buscoupler/trunk tcp://10.0.0.12:5556",
        ),
        "the journal has faults, nobody can take what it has, or a process has it open",
    ),
    "traffic": Command(
        f"{_IN}.traffic",
        "tutorial.md#5-record-it-and-check-it",
        "send numbered test traffic at a given rate",
        ("buscoupler traffic tcp://127.0.0.1:5555 --rate 1000 --size 64 --seconds 10",),
        "no peer was there in time, or a message was dropped",
    ),
    "top": Command(
        f"{_IN}.top",
        "status.md",
        "show what running gateways do now",
        ("buscoupler top", "buscoupler top http://10.0.0.11:9943 --once"),
        "nothing runs, or a status page does not answer",
    ),
    "alarms": Command(
        f"{_IN}.alarms",
        "alarms.md",
        "show the alarms of running gateways, acknowledge one, make rules of them",
        (
            "buscoupler alarms",
            "buscoupler alarms ack fridge-warm",
            "buscoupler alarms rules plant.yaml > alarms.rules.yml",
        ),
        "an alarm is raised, or no gateway has one; with ack, nothing was to be acknowledged",
    ),
    "key": Command(
        f"{_IN}.key",
        "security.md",
        "make a key that the gateways of a system share",
        ("buscoupler key new trunk.key",),
    ),
    "cert": Command(
        f"{_IN}.cert",
        "security.md",
        "make, renew and show certificates of gateways and their authority",
        (
            "buscoupler cert new plant-ca.pem",
            "buscoupler cert gateway gw-a.pem --ca plant-ca.pem --host 10.0.0.11",
            "buscoupler cert renew gw-a.pem --ca plant-ca.pem",
        ),
        "a file is there already or cannot be read; with show, a certificate ends within 30 days",
    ),
    "tokens": Command(
        f"{_IN}.tokens",
        "wire/frame.md",
        "show the tokens of names, and names that share one",
        ("buscoupler tokens fridge temp",),
        "two names share a token",
    ),
    "pipeline": Command(
        f"{_IN}.pipeline",
        "pipeline.md",
        "run any job on captures: also tokens, watch, serve",
        ("buscoupler pipeline quality capture --engine sail",),
        "a job found something; each job says what",
    ),
}
