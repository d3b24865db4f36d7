# `make demo` finds what it would install
cp "$PYTHONPATH"/Makefile "$PYTHONPATH"/pyproject.toml .
touch .venv/demo
# the line that the first lines of topologies/field.yaml make
socat PTY,link=/tmp/buscoupler-line-a,raw,echo=0 PTY,link=/tmp/buscoupler-line-b,raw,echo=0 &
