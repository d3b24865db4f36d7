"""The status page of a gateway over HTTP: `server` listens and `service` is what the gateway opens.

`exchange` reads requests, which are `messages` as are answers. `guard` says who may read, `pages` finds the
answer, and `stream` feeds the pages that are open; `viewed` is what they get of a status. `metrics` writes
OpenMetrics, `health` says whether the gateway is ready, and `assets` has the files: the page, its style and
script, the style of drawings, and for monitoring a dashboard of Grafana and rules of Prometheus.
"""
