#!/usr/bin/env python3
"""extract_code.py FILE [NUMBER]: prints the blocks marked as C of a page, or the one of a number from
1 on, or the code in the opening comment of a header, so that a test compiles them."""
import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
if sys.argv[1].endswith(".h"):
    opening = text[:text.index("*/")]
    blocks = ["\n".join(re.findall(r"^ \*     (.*)$", opening, re.MULTILINE))]
else:
    blocks = re.findall(r"^```c\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
if len(sys.argv) > 2:
    blocks = [blocks[int(sys.argv[2]) - 1]]
print("/* The code of a page or header, for the test that includes it. */")
print("\n".join(blocks))
