"""The status page of a gateway over HTTP: `server` listens, and `service` opens it for the gateway.

`exchange` reads requests and writes answers, which `messages` defines. `guard` refuses readers, and lets
only `people` do what `acknowledging` does. `pages` finds the answer to a path, and `stream` feeds the pages
that are open with the fields of `page_model`. `metrics` writes OpenMetrics. `assets` has the files: the page,
its style and script, the style of drawings, a dashboard for Grafana and rules for Prometheus.
"""
