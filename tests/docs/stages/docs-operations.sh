# somebody sends
buscoupler traffic tcp://127.0.0.1:5555 --pattern fridge/temp --rate 20 --timeout 60 &
