# a capture
buscoupler demo --seconds 1 --capture capture > demo.txt
