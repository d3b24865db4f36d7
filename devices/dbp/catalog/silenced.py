"""The peers of a catalog that get no answers any more. Pure."""

from devices.dbp.catalog.bounds import Bounds


class Silenced:
    """The identities of silenced peers, the one quiet longest first.

    A peer that is quiet for `silence_s` is forgotten, and one whose connection ends. If there is no room, the
    one quiet longest is forgotten.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._heard_s: dict[bytes, float] = {}

    def __len__(self) -> int:
        return len(self._heard_s)

    def add(self, peer: bytes, now_s: float) -> None:
        """Silence a peer, whose last message came at `now_s`."""
        self._heard_s.pop(peer, None)
        self._heard_s[peer] = now_s
        if len(self._heard_s) > self._bounds.silenced:
            del self._heard_s[next(iter(self._heard_s))]

    def hears(self, peer: bytes, now_s: float) -> bool:
        """Return whether a peer whose message comes at `now_s` is silenced, and note that time."""
        heard_s = self._heard_s.get(peer)
        if heard_s is None:
            return False
        silenced = now_s - heard_s < self._bounds.silence_s
        if silenced:
            self.add(peer, now_s)
        else:
            del self._heard_s[peer]
        return silenced

    def forget(self, peer: bytes) -> None:
        """Forget a peer, if it is silenced."""
        self._heard_s.pop(peer, None)

    def expire(self, now_s: float) -> None:
        """Forget the peers that are quiet for `silence_s`."""
        limit_s = now_s - self._bounds.silence_s
        old: list[bytes] = []
        for peer, heard_s in self._heard_s.items():
            if heard_s > limit_s:
                break
            old.append(peer)
        for peer in old:
            del self._heard_s[peer]
