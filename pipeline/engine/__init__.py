"""What jobs run on: a Spark session with its Java, a resident server, Sail."""
