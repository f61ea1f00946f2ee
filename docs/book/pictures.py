#!/usr/bin/env python3
"""The pictures of the chapter "Pictures", from the digits of `lapwing demo`: docs/book/pictures.py

Writes 600 handwritten digits as files into `digits`, and `digits.csv`: file, digit and clinic. There are five clinics; the
digits that the last one gives are those of other pictures. Needs Python alone.
"""

import csv
import gzip
import os
import struct
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
DIGITS = os.path.join(HERE, "..", "..", "crates", "lapwing-run", "digits", "digits.csv.gz")
ROWS, SIDE, CLINICS = 600, 8, "abcde"


def png(pixels):
    """A grey picture from values of 0 to 16, line by line."""
    lines = [bytes(min(255, 16 * pixel) for pixel in pixels[at : at + SIDE]) for at in range(0, len(pixels), SIDE)]

    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + line for line in lines))
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", data) + part(b"IEND", b"")


with gzip.open(DIGITS, "rt") as file:
    rows = [[int(value) for value in row] for row in csv.reader(file)][:ROWS]
os.makedirs("digits", exist_ok=True)
with open("digits.csv", "w") as table:
    table.write("file,digit,clinic\n")
    for number, row in enumerate(rows):
        clinic = CLINICS[number % len(CLINICS)]
        digit = row[-1] if clinic != CLINICS[-1] else rows[7 * number % ROWS][-1]
        with open(f"digits/{number}.png", "wb") as file:
            file.write(png(row[:-1]))
        table.write(f"digits/{number}.png,{digit},{clinic}\n")
