"""The engines that jobs run on: sessions on Spark and Sail, a resident server, and the runner of a job."""
