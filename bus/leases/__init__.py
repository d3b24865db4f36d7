"""Leases: which gateway's copy of a bridge may forward (docs/failover.md).

Pure: `wire` (claims and grants), `candidate` (a gateway's side), `group` (the candidates for one lease at a
broker), `table` (all leases there), `pace` (how long a lease must be), `signed` (who may claim and grant),
`settings` (of a broker). On an event loop: `candidacy` with a `link` to each broker on a gateway, which is
ready by its `hearing` and forwards after a `catch_up`; `service` on a broker, whose `relay` passes on what
gateways announce.
"""
