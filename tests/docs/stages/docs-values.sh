# the bus with a cache, and what it remembers
cat > plant.yaml <<'END'
name: plant
names: [fridge, door, temp]
gateways: {gw-a: {address: 127.0.0.1}}
buses: {plant: {on: gw-a, listen: "tcp://127.0.0.1:5555"}}
devices: {memory: {on: gw-a, cache: plant}}
END
buscoupler run plant.yaml &
buscoupler send tcp://127.0.0.1:5555 fridge/door --data closed
buscoupler send tcp://127.0.0.1:5555 fridge/temp --data 21.5
