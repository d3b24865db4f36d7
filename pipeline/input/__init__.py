"""The rows that jobs work on: of a capture, of pcapng as a Spark data source, or made up as a sample."""
