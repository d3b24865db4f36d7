"""The guard of a status page: checks the name of the host, the origin and the token of a request. Pure."""

from collections.abc import Collection
from http import HTTPStatus
from typing import Final

from appliance.web.messages import POST, Request, Response, text
from appliance.web.people import NOBODY, People
from bus.urls import OwnHosts, host_in

COOKIE: Final = "buscoupler_token"
_CHALLENGE: Final = (("WWW-Authenticate", 'Bearer realm="buscoupler"'),)
FREE: Final = ("/healthz",)
"""Paths that tell nothing, and so need no token."""


class Guard:
    """The guard of one page. `names` are those of the host. Readers must show the `token` unless it is empty.

    `secure`: the page is served over https, and browsers send the token only there. `people` may acknowledge
    alarms: with their own tokens, which are not for reading, as the token for reading is for nothing else.
    """

    def __init__(
        self, names: Collection[str], token: str = "", secure: bool = False, people: People = NOBODY
    ) -> None:
        self._own, self._people = OwnHosts(names), people
        self._token = token.encode()
        self._attributes = "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")

    def refusal(self, request: Request) -> Response | None:
        """Return the refusal of a request, or None if the request may be answered."""
        if len(request.hosts) != 1 or not (host := host_in(request.hosts[0])):
            return text(HTTPStatus.BAD_REQUEST, "a request needs one Host")
        if host not in self._own:
            return text(HTTPStatus.FORBIDDEN, "this is no name of this gateway: to allow it, add it to hosts")
        if self._is_foreign(request):
            return text(HTTPStatus.FORBIDDEN, "a page of another host may not read this")
        if request.method == POST:
            return self._unfit(request)
        if self._token and request.path not in FREE:
            return self._unknown(request)
        return None

    def person(self, request: Request) -> str:
        """Return who posts a request, by the token that it shows; "" for nobody who may."""
        return self._people.who(_bearer(request))

    def _unfit(self, request: Request) -> Response | None:
        """Return the refusal of a request that would change something."""
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return text(HTTPStatus.FORBIDDEN, "a page of another host may not do this")
        if not self._people:
            return text(HTTPStatus.FORBIDDEN, "nobody may: give the status of this gateway an ack_file")
        if not self.person(request):
            words = "show your own token for this: send Authorization: Bearer TOKEN"
            return text(HTTPStatus.UNAUTHORIZED, words)._replace(headers=_CHALLENGE)
        return None

    def _is_foreign(self, request: Request) -> bool:
        """Return whether a page of another origin makes the request. Following a link is allowed."""
        origin, headers = request.headers.get("origin"), request.headers
        if origin is not None and origin.partition("://")[2].lower() != request.hosts[0].lower():
            return True
        elsewhere = headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
        return elsewhere and headers.get("sec-fetch-mode") != "navigate"

    def _unknown(self, request: Request) -> Response | None:
        shown = request.query.get("token")
        if shown is not None and self._is_token(shown) and request.path == "/":
            cookie = f"{COOKIE}={shown}; {self._attributes}"
            headers = (("Location", "/"), ("Set-Cookie", cookie))  # so that it stays out of the history
            return text(HTTPStatus.SEE_OTHER, "go on without the token")._replace(headers=headers)
        if any(map(self._is_token, (_bearer(request), _cookie(request.headers.get("cookie", ""))))):
            return None
        words = "show the token: open /?token=TOKEN once, or send Authorization: Bearer TOKEN"
        return text(HTTPStatus.UNAUTHORIZED, words)._replace(headers=_CHALLENGE)

    def _is_token(self, shown: str) -> bool:
        from hmac import compare_digest  # late: it loads OpenSSL

        return compare_digest(shown.encode(), self._token)


def _bearer(request: Request) -> str:
    """Return the token of a request; "" without one. The scheme is in any case of letters (RFC 7235, 2.1)."""
    shown = request.headers.get("authorization", "")
    scheme, _, token = shown.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else shown


def _cookie(header: str) -> str:
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")
