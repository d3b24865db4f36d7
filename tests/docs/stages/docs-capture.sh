# a bus, and somebody who sends
buscoupler device tcp://127.0.0.1:5555 &
buscoupler traffic tcp://127.0.0.1:5555 --rate 100 --timeout 60 &
