"""Leases: which gateway's copy of a bridge may forward (docs/failover.md).

Pure: `wire` (claims and grants), `candidate` (a gateway's side), `group` (the candidates for one lease at a
broker), `table` (all leases there), `pace` (how long a lease must be), `signed` (who may claim and grant),
`settings` (of a broker). On an event loop: `candidacy` on a gateway, which is ready by its `hearing`,
forwards after a `catch_up`, notes its `lateness`, and has `links`, a `link` to each broker; `service` on a
broker, whose `relay` passes on what gateways announce.
"""
