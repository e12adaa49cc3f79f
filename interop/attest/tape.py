"""Stands between a client and an engine, and writes down every line that goes either way.

python tape.py ENGINE FOLDER [ARGUMENT…]
"""

import os
import pathlib
import signal
import subprocess
import sys
import threading


def copy(source, target, path):
    with open(path, "wb", buffering=0) as tape:
        for line in source:
            tape.write(line)
            target.write(line)
            target.flush()


def main(engine, folder, *arguments):
    folder = pathlib.Path(folder)
    # A client that is done may end us before the engine has ended by itself, which is what is to be seen.
    signal.signal(signal.SIGTERM, lambda *_: None)
    process = subprocess.Popen([engine, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    asking = (sys.stdin.buffer, process.stdin, folder / "asked")
    threading.Thread(target=copy, args=asking, daemon=True).start()
    copy(process.stdout, sys.stdout.buffer, folder / "answered")
    (folder / "code").write_text(str(process.wait()))
    # The client may keep our input open for as long as we live.
    os._exit(process.returncode)


main(*sys.argv[1:])
