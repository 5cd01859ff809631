#!/usr/bin/env python3
"""extract_code.py PAGE: prints the blocks marked as C of a page, so that a test compiles them."""
import re
import sys

with open(sys.argv[1], encoding="utf-8") as page:
    blocks = re.findall(r"^```c\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)
print("/* The code of a page of docs/, for the test that includes it. */")
print("\n".join(blocks))
