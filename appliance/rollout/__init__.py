"""The roll-out of a topology to gateways over SSH: `buscoupler deploy` and `rollback`.

`plan` decides, without I/O, which gateway does which step next. `steps` are what is asked of a gateway and
what it answers, `runner` asks by the system's `ssh`. On the gateway, `station` does a step, `keeper` keeps
the file that was there before, and `guard` goes back when nobody confirms in time.
"""
