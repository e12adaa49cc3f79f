"""Secrets of a run's environment, each in spellings in which programs print them."""

import base64
import json
import os
import textwrap
import urllib.parse


def spellings():
    plain, multi, accent = os.environ["PLAIN"], os.environ["MULTI"], os.environ["ACCENT"]
    slash, digits, space = os.environ["SLASH"], os.environ["DIGITS"], os.environ["SPACE"]
    wrapped = base64.b64encode(("a" * 48 + plain).encode()).decode()
    return {
        "raw": ("PLAIN", plain),
        "lines": ("MULTI", multi),
        "crlf": ("MULTI", multi.replace("\n", "\r\n")),
        "indented": ("MULTI", multi.replace("\n", "\n    ")),
        "json": ("ACCENT", json.dumps({"pw": accent})),
        "json_twice": ("ACCENT", json.dumps(json.dumps(accent))),
        "json_slash": ("SLASH", json.dumps(slash).replace("/", "\\/")),
        "json_all": ("PLAIN", "".join("\\u%04x" % ord(c) for c in plain)),
        "percent": ("SLASH", urllib.parse.quote(slash, safe="")),
        "percent_lower": ("PLAIN", "".join("%%%02x" % b for b in plain.encode())),
        "percent_some": ("SLASH", slash.replace("/", "%2f", 1)),
        "plus": ("SPACE", urllib.parse.quote_plus(space)),
        "html": ("SPACE", space.replace("&", "&amp;")),
        "shell": ("SPACE", space.replace(" ", "\\ ")),
        "base64": ("PLAIN", base64.b64encode(b"u:" + plain.encode()).decode()),
        "base64_url": ("SLASH", base64.urlsafe_b64encode(slash.encode()).decode()),
        "base64_lines": ("PLAIN", "\n".join(textwrap.wrap(wrapped, 76))),
        "hex": ("PLAIN", plain.encode().hex()),
        "hex_upper": ("PLAIN", plain.encode().hex().upper()),
        "number": ("DIGITS", digits),
        "nul": ("PLAIN", plain[:9] + "\0" + plain[9:]),
        "colour": ("PLAIN", plain[:9] + "\x1b[31m" + plain[9:]),
    }


if __name__ == "__main__":
    print(json.dumps(spellings()))
