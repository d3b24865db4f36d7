"""The bounds of a syndication broker: of a message, of a producer, of all that clients register. Pure."""

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """Sizes in bytes of MessagePack, ages in seconds, all above 0.

    By default the longest difference, with every producer in it, fits the queue of a connection
    (`bus.serving.limits.Limits.queue_bytes`).
    """

    object_bytes: int = 1 << 16  # of one message; a longer one ends the connection as soon as that shows
    depth: int = 32  # containers within each other
    items: int = 1 << 14  # of all containers of a message together, keys counted too
    id_bytes: int = 200

    metadata_keys: int = 128  # of one producer
    metadata_bytes: int = 4096  # of one producer
    metadata_elements: int = 512  # of the lists of one producer together: a condition looks at each
    all_metadata_bytes: int = 1 << 24
    producers: int = 4096  # including those that are gone and remembered
    kept_s: float = 7 * 86400.0  # how long the metadata of a gone producer are remembered

    speakers: int = 8192  # pairs of a client and a producer that it speaks for
    speakers_per_client: int = 2048
    speakers_per_host: int = 2048
    queries: int = 4096  # subscriptions, equal ones counted too
    queries_per_host: int = 2048
    all_query_bytes: int = 1 << 26  # of memory, by the estimate of each query
    instructions: int = 1 << 14  # of the patterns of all queries on one key: each sees each byte of a value
    change_cost: int = 1 << 21  # of one change of metadata: instructions times bytes, some 3 to 8 ns each
    members: int = 1 << 19  # of the sets of all queries together: some 100 bytes each
    change_values: int = 1 << 16  # added to all selections by one change of metadata: some 1 us each
    selection_bytes: int = 1 << 17  # of the values of one selection, when a client subscribes to it

    def __post_init__(self) -> None:
        if min(astuple(self)) <= 0:
            raise ValueError("every bound must be above 0")
