"""Copies a program, with its need for newer versions of the C library marked as weak, so that an older one starts it.

    python weaken.py PROGRAM COPY GLIBC_2.38 GLIBC_2.39

Nothing else of the program is changed. Only 64-bit little-endian ELF is understood.
"""

import shutil
import struct
import sys

VERSIONS_NEEDED = 0x6FFFFFFE
WEAK = 2


def sections(image):
    start, size, count = struct.unpack_from("<Q", image, 0x28)[0], *struct.unpack_from("<HH", image, 0x3A)
    return [struct.unpack_from("<IIQQQQIIQQ", image, start + number * size) for number in range(count)]


def weaken(image, versions):
    """Marks these versions as weak, and says how many there were."""
    table = sections(image)
    changed = 0
    for _, kind, _, _, offset, _, link, files, _, _ in table:
        if kind != VERSIONS_NEEDED:
            continue
        names, at = table[link][4], offset
        for _ in range(files):
            _, count, _, first, following = struct.unpack_from("<HHIII", image, at)
            entry = at + first
            for _ in range(count):
                _, flags, _, name, next_entry = struct.unpack_from("<IHHII", image, entry)
                if bytes(image[names + name : image.index(0, names + name)]).decode() in versions:
                    struct.pack_into("<H", image, entry + 4, flags | WEAK)
                    changed += 1
                entry += next_entry
            at += following
    return changed


def main(program, copy, *versions):
    with open(program, "rb") as file:
        image = bytearray(file.read())
    if image[:6] != b"\x7fELF\x02\x01":
        sys.exit(f"{program} is no 64-bit ELF program")
    weaken(image, versions)
    with open(copy, "wb") as file:
        file.write(image)
    shutil.copymode(program, copy)


if __name__ == "__main__":
    main(*sys.argv[1:])
