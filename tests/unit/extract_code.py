#!/usr/bin/env python3
"""extract_code.py PAGE [NUMBER]: prints the blocks marked as C of a page, or the one of a number from
1 on, so that a test compiles them."""
import re
import sys

with open(sys.argv[1], encoding="utf-8") as page:
    blocks = re.findall(r"^```c\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)
if len(sys.argv) > 2:
    blocks = [blocks[int(sys.argv[2]) - 1]]
print("/* The code of a page, for the test that includes it. */")
print("\n".join(blocks))
