#!/usr/bin/env python3
"""A list of so many random addresses, always the same ones, some /24s having many: lists.py COUNT."""
import random
import sys

random.seed(5)
left = int(sys.argv[1])
print("$SOA 3600 ns.test admin.test 1 1h 1h 1w 1h\n$NS 1h ns.test\n:127.0.0.2:Listed, see http://bl.test/?$")
print("127.0.0.2")
while left > 0:
    a, b, c = random.getrandbits(8), random.getrandbits(8), random.getrandbits(8)
    for d in random.sample(range(256), min(left, 256, 1 + int(random.expovariate(1 / 12)))):
        print(f"{a}.{b}.{c}.{d}")
        left -= 1
