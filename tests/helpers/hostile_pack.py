#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Write a small pack that is a lot of work, and print the id of its commit.

    hostile_pack.py inflate BYTES FILE   one file of so many zeros, which deflate takes a thousandth of
    hostile_pack.py bomb BYTES FILE      one of about so many, as a delta of a few bytes
    hostile_pack.py deep COUNT FILE      a file that is a delta of a delta of ..., COUNT deep

The commit's tree has the file by the name "file", and with bomb its base by the name "base". Up to
1 GiB all ids are right; above that nobody would compute them, and the file has its base's id.
"""
import hashlib
import struct
import sys
import zlib

COMMIT, TREE, BLOB, OFS_DELTA = 1, 2, 3, 6
PIECE = 0xFFFFFF  # what one instruction of a delta can copy
MIB = 1 << 20
GIB = 1 << 30


def object_id(kind, pieces, size):
    digest = hashlib.sha1(b"%s %d\0" % (kind, size))
    for piece in pieces:
        digest.update(piece)
    return digest.digest()


def zeros(size):
    block = bytes(MIB)
    for _ in range(size // MIB):
        yield block
    yield block[: size % MIB]


def deflate_zeros(size):
    """One MiB is deflated, and what that gives is repeated."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    deflate.compress(bytes(MIB))
    deflate.flush(zlib.Z_FULL_FLUSH)
    mib = deflate.compress(bytes(MIB)) + deflate.flush(zlib.Z_FULL_FLUSH)
    last = zlib.compressobj(9, zlib.DEFLATED, -15)
    rest = last.compress(bytes(size % MIB)) + last.flush()
    # Adler-32 of zeros: the first sum stays 1, the second counts them
    return b"\x78\xda" + mib * (size // MIB) + rest + struct.pack(">HH", size % 65521, 1)


def size_header(kind, size):
    out = bytearray([kind << 4 | size & 15])
    size >>= 4
    while size:
        out[-1] |= 0x80
        out.append(size & 0x7F)
        size >>= 7
    return bytes(out)


def delta_size(size):
    out = bytearray([size & 0x7F])
    while size := size >> 7:
        out[-1] |= 0x80
        out.append(size & 0x7F)
    return bytes(out)


def distance(n):
    out = [n & 0x7F]
    while n := n >> 7:
        n -= 1
        out.append(0x80 | n & 0x7F)
    return bytes(reversed(out))


class Pack:
    def __init__(self):
        self.body = bytearray()
        self.count = 0

    def add(self, kind, size, deflated, base=None):
        """Returns where it is; base is where its base is."""
        at = len(self.body)
        self.body += size_header(kind, size)
        if base is not None:
            self.body += distance(at - base)
        self.body += deflated
        self.count += 1
        return at

    def add_whole(self, kind, name, data):
        self.add(kind, len(data), zlib.compress(data))
        return object_id(name, [data], len(data))

    def add_delta(self, base, delta):
        return self.add(OFS_DELTA, len(delta), zlib.compress(delta, 9), base)

    def add_commit(self, entries):
        tree = b"".join(b"100644 %s\0%s" % entry for entry in sorted(entries))
        who = b"a <a@example.org> 1700000000 +0000"
        text = b"tree %s\nauthor %s\ncommitter %s\n\nhostile\n" % (
            self.add_whole(TREE, b"tree", tree).hex().encode(),
            who,
            who,
        )
        return self.add_whole(COMMIT, b"commit", text).hex()

    def write(self, path):
        out = b"PACK" + struct.pack(">II", 2, self.count) + self.body
        with open(path, "wb") as file:
            file.write(out + hashlib.sha1(out).digest())


def inflate(pack, size):
    pack.add(BLOB, size, deflate_zeros(size))
    known = object_id(b"blob", zeros(size), size) if size <= GIB else bytes(20)
    return pack.add_commit([(b"file", known)])


def bomb(pack, size):
    copies = max(1, size // PIECE)
    size = copies * PIECE
    base = pack.add(BLOB, PIECE, deflate_zeros(PIECE))
    base_id = object_id(b"blob", zeros(PIECE), PIECE)
    copy = b"\xf0" + struct.pack("<I", PIECE)[:3]
    pack.add_delta(base, delta_size(PIECE) + delta_size(size) + copy * copies)
    known = object_id(b"blob", zeros(size), size) if size <= GIB else base_id
    return pack.add_commit([(b"base", base_id), (b"file", known)])


def deep(pack, depth):
    data = b"%012d" % 0
    at = pack.add(BLOB, len(data), zlib.compress(data))
    for i in range(1, depth + 1):
        data = b"%012d" % i
        # a byte of the base, so that it is needed; the rest is one's own
        change = b"\x90\x01" + b"\x0b" + data[1:]
        at = pack.add_delta(at, delta_size(12) + delta_size(12) + change)
    return pack.add_commit([(b"file", object_id(b"blob", [data], len(data)))])


def main():
    kinds = {"inflate": inflate, "bomb": bomb, "deep": deep}
    if len(sys.argv) != 4 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    pack = Pack()
    print(kinds[sys.argv[1]](pack, int(sys.argv[2])))
    pack.write(sys.argv[3])


main()
