import sys

display("shown before the exit")
sys.exit(3)
