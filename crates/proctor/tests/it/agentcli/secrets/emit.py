"""Task of the tests of planted credentials.

Writes every value that it was given to both streams, in all forms that are masked, and keeps the command lines of all processes.
"""

import base64
import glob
import json
import os
import sys
import urllib.parse

values = [value for name, value in os.environ.items() if name.startswith("P_")]
for name, path in os.environ.items():
    if name.startswith("F_"):
        with open(path, encoding="utf-8") as file:
            values.append(file.read())
text = sys.stdin.read()
if text and "QUIET" not in os.environ:
    values.append(text)
for value in values:
    data = value.encode()
    forms = [
        value,
        base64.b64encode(data).decode(),
        base64.urlsafe_b64encode(data).decode().rstrip("="),
        base64.b64encode(b"x" + data + b"yz").decode(),
        urllib.parse.quote(value, safe=""),
        urllib.parse.quote_plus(value),
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
    ]
    for stream in (sys.stdout, sys.stderr):
        for form in forms:
            # Two writes, so that the value lies across a border.
            stream.write("<" + form[: len(form) // 2])
            stream.flush()
            stream.write(form[len(form) // 2 :] + ">\n")
            stream.flush()
with open("emitted", "a", encoding="utf-8") as file:
    file.write(f"{len(values)}\n")
with open("command-lines", "ab") as file:
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as line:
                file.write(line.read() + b"\n")
        except OSError:
            pass
