# the broker, and the producers of the page
cat > producers.py <<'END'
import socket, time
import msgpack

A = {"Room": "410", "Type": "Thermostat", "Metadata/Location/Building": "Soda Hall", "Tags": ["zone", "temp"], "Floor": 4}
B = {"Room": "410", "Type": "Camera", "Metadata/Location/Building": "Soda Hall", "Floor": 4}
C = {"Room": "12", "Type": "Thermostat", "Metadata/Location/Building": "Cory Hall", "Tags": ["temp"]}
listener = socket.create_connection(("127.0.0.1", 4444))
listener.sendall(msgpack.packb("has Room"))
producers = []
for name, metadata in zip("abc", (A, B, C)):
    producers.append(socket.create_connection(("127.0.0.1", 4444)))
    producers[-1].sendall(msgpack.packb([name, metadata, 1]))
unpacker, known = msgpack.Unpacker(), set()
while len(known) < 3:
    unpacker.feed(listener.recv(65536))
    known.update(*(message["New"] for message in unpacker if isinstance(message, dict)))
print("all producers are known", flush=True)
time.sleep(600)
END
buscoupler syndicate tcp://127.0.0.1:4444 --database none > broker.txt &
until grep -q "syndication broker on" broker.txt; do sleep 0.1; done
python producers.py > producers.txt &
until grep -q known producers.txt; do sleep 0.1; done
