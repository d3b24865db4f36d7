"""Endpoints: one word that names a bus or a medium, and the link to it."""

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from appliance.commandline.arguments import above_zero, argument, whole_above_zero
from appliance.probe.media import form_of, forms
from appliance.probe.spoken import spoken_of
from bridges.media import MEDIA
from bridges.media.medium import Medium
from bridges.protocols.protocol import Protocol
from bus.confined import INPROC, Confined
from bus.elsewhere import known_elsewhere
from bus.errors import LinkError
from bus.hub import Link
from bus.keys import Keyring, ring_of
from bus.transports.links import Mode, bus_link
from bus.transports.options import STREAMS, Tls
from bus.urls import SCHEMES

RETRY_MAX_S = 1.0  # short, because a user waits
_EXAMPLES = "endpoints of a bus or a medium"  # in their place, the examples of all that are installed


class Endpoint(NamedTuple):
    """A parsed word of the command line.

    `medium` is the record of its medium; None: the word is the URL of a bus. `protocol` is what its devices
    speak; None: TMQ.
    """

    word: str
    medium: Medium | None = None
    protocol: Protocol | None = None

    @property
    def names(self) -> list[int | str]:
        """The names of tokens that the protocol makes."""
        if self.protocol is None:
            return []
        return [*(name for pattern in self.protocol.patterns() for name in pattern), *self.protocol.names()]

    @property
    def uncounted(self) -> bool:
        """Return whether the transport does not count the messages that it has written: inproc does not."""
        return self.medium is None and self.word.partition("://")[0] not in STREAMS

    @property
    def remote(self) -> bool:
        """Return whether a server has the device of the medium: it may hang up after it has accepted."""
        return self.medium is not None and self.medium.remote

    @property
    def confined(self) -> Confined | None:
        """The bounds of what the endpoint reaches; None if other machines may be there."""
        if self.medium is not None:
            return self.medium.confined
        return INPROC if self.word.startswith("inproc:") else None

    def link(
        self, listen: bool = False, tls: Tls | None = None, hears: bool = True, keys: Keyring | None = None
    ) -> Link:
        """Return the link, not yet open. With `keys` it signs, as a trunk. Without `hears` it only sends.

        Raises `LinkError` for settings that can never work.
        """
        if self.medium is None:
            return _bus_link(self.word, listen, tls, keys)
        if listen or tls:
            raise LinkError(f"{self.word}: --listen and --tls-... are for a bus")
        if keys is not None and not self.medium.signs:
            raise LinkError(f"{self.word}: nothing is signed on {self.medium.key}: leave --keys out")
        if self.medium.hears_only and not hears:
            raise LinkError(f"{self.word}: it only listens, so nothing is sent there: leave listen_only out")
        if self.protocol is not None:
            return self._spoken(self.medium, self.protocol, keys)
        signing: dict[str, Any] = {} if keys is None else {"keys": keys}
        return (self.medium if hears else self.medium.mute()).link(retry_max_s=RETRY_MAX_S, **signing)

    def _spoken(self, medium: Medium, protocol: Protocol, keys: Keyring | None) -> Link:
        if keys is not None:
            raise LinkError(f"{self.word}: nothing is signed with {protocol.key}: leave --keys out")
        return medium.speaking(protocol, retry_max_s=RETRY_MAX_S)


def parse_endpoint(word: str) -> Endpoint:
    """Return the endpoint that `word` names. Raises `LinkError` that says which part of it is wrong."""
    if "://" in word and word.partition("://")[0] in SCHEMES:
        return Endpoint(word)
    name, _, rest = word.partition(":")
    try:
        form = form_of(name)
    except ValueError as error:
        raise LinkError(f"{word}: {error}") from error
    if form is not None and rest.startswith("//"):
        raise LinkError(f"{word}: write {name}:{rest[2:]}, without //")
    if form is not None:
        return Endpoint(word, *spoken_of(word, form, rest))
    schemes = ", ".join(f"{known}://" for known in SCHEMES)
    media = ", ".join(f"{known.word.name}:" for known in forms(MEDIA.all()))
    hint = known_elsewhere(name) or _other_word(name)
    raise LinkError(f"{word!r} is no endpoint{hint or f': write a bus ({schemes}) or a medium ({media})'}")


def _other_word(key: str) -> str:
    """Return how endpoints write a medium that topology files call `key`; "" if there is none."""
    found = next((form.word for form in forms(MEDIA.all()) if form.record.key == key), None)
    return "" if found is None else f": {key} of a topology is {found.name}: here, as {found.example}"


def _bus_link(url: str, listen: bool, tls: Tls | None, keys: Keyring | None) -> Link:
    if tls and not url.startswith(("wss://", "tls+tcp://")):
        raise LinkError(f"{url}: --tls-... are for wss:// and tls+tcp://")
    mode: Mode = "listen" if listen else "dial"
    if keys is not None and url.startswith("inproc:"):
        raise LinkError(f"{url}: --keys is for an address that other processes reach")
    # It may be a trunk.
    return bus_link(url, mode, tls=tls, trunk=True, keys=keys, wary=True, retry_max_s=RETRY_MAX_S)


class _Help(argparse.RawDescriptionHelpFormatter):
    """A help text that lists the examples only when it is shown: that asks other distributions for theirs."""

    def add_text(self, text: str | None) -> None:
        super().add_text(examples() if text == _EXAMPLES else text)


def examples() -> str:
    """Return two short lines for each way to write an endpoint."""
    return "\n".join(["endpoints:", *(f"  {one}\n      {text}" for one, text in rows(MEDIA.all()))])


def rows(media: Iterable[str]) -> list[tuple[str, str]]:
    """Return each way to write an endpoint, of a bus or of one of the `media`, with its meaning."""
    found = [("tcp://HOST:PORT, ipc:///PATH, ws://..., ...", "a bus; dialled, unless it is to listen")]
    return [*found, *((form.word.example, form.word.help) for form in forms(media))]


def endpoint_arguments(
    parser: argparse.ArgumentParser, count: str, parse: Callable[[str], Endpoint] = parse_endpoint
) -> None:
    """Add the arguments of every command with an endpoint; `count` is the help of `--count`.

    `options.fail(text)` ends the command for wrong use.
    """
    parser.formatter_class, parser.epilog = _Help, _EXAMPLES
    parser.set_defaults(fail=parser.error)
    parser.set_defaults(endpoints=lambda: rows(MEDIA.ours()))  # for its page
    parser.add_argument(
        "endpoint", type=argument(parse), metavar="ENDPOINT", help="a bus, uart:..., can:..., ..."
    )
    parser.add_argument("--count", type=whole_above_zero, metavar="N", help=count)
    parser.add_argument("--listen", action="store_true", help="listen on the bus URL instead of dialling it")
    for name, text in (("ca", "trust this authority"), ("cert", "our certificate"), ("key", "our key")):
        parser.add_argument(f"--tls-{name}", metavar="FILE", help=f"{text} (wss://, tls+tcp://)")
    add_keys(parser)


def add_keys(parser: argparse.ArgumentParser) -> None:
    """Add `--keys`, for a command that may dial a trunk."""
    text = "a key of the trunk (several: the first signs, all verify)"
    parser.add_argument("--keys", action="append", default=[], metavar="FILE", help=text)


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """Add `--timeout`, for a command that sends."""
    text = "wait S seconds for a peer, device or broker (10)"
    parser.add_argument("--timeout", type=above_zero, default=10.0, metavar="S", help=text)


def link_of(options: argparse.Namespace, hears: bool = True) -> Link:
    """Return the link for the parsed arguments. Wrong use ends the program with status 2."""
    tls = Tls(ca_file=options.tls_ca, cert_file=options.tls_cert, key_file=options.tls_key)
    try:
        made: Link = options.endpoint.link(
            options.listen, None if tls == Tls() else tls, hears, ring_of(options.keys)
        )
    except LinkError as error:
        options.fail(str(error))
    say_confined(options.endpoint)
    return made


def say_confined(endpoint: Endpoint) -> None:
    """Print a hint if nobody outside this process, or this machine, hears what is sent to an endpoint."""
    confined = endpoint.confined
    if confined is not None and not confined.stated:
        print(f"buscoupler: {endpoint.word}: {confined.text}", file=sys.stderr)
