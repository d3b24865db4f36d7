# A capture. If a greeting of the demo was sent before its bridge was connected, it was lost, and audits say so.
for attempt in 1 2 3; do
  rm -rf capture
  buscoupler demo --seconds 1 --capture capture > demo.txt
  buscoupler audit capture --engine sail --quiet > /dev/null && break
done
