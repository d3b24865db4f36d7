"""The commands. Each module has `arguments(parser)` and `run(options)`, which returns the exit status.

Topologies: `run`, `reload`, `check`, `diff`, `show`, `explain`, `create`, `schema`; `deploy` and
`rollback` over SSH; `simulate` in virtual time; `install` and `uninstall` for systemd. Services:
`device`, `broker`, `syndicate`, `catalog`, `demo`. Nodes of a catalog: `service`, `client`. Test traffic:
`send`, `recv`, `traffic`. To look into what is there: `find`, `top`, `monitor`, `values`, `query`,
`tokens`, `capture`, `journal`, `alarms`, and `pipeline` with all jobs. Keys: `key`, `cert`. The shell:
`completion`.
"""
