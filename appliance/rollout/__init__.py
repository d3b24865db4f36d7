"""The roll-out of a topology to gateways over SSH: `buscoupler deploy` and `rollback`.

`plan` decides, without I/O, which gateway does which step next. `steps` are what is asked of a gateway and
what it answers, `runner` asks by the system's `ssh`. On the gateway, `station` does a step, and goes back
when nobody confirms in time; `keeper` keeps the file that was there before.
"""
