"""Files of arrays without NumPy: what a test needs to write a reference by hand.

SPDX-License-Identifier: MIT
"""
import struct
import zipfile

CODES = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q", "|u1": "B", "|b1": "?", "<f2": "e", ">f4": "f"}


def npy(values, shape, descr="<f4", fortran=False, padded=True):
    head = repr({"descr": descr, "fortran_order": fortran, "shape": tuple(shape)}).encode()
    head += (b" " * ((-len(head) - 11) % 64) if padded else b"") + b"\n"
    order = ">" if descr[0] == ">" else "<"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack(
        "%s%d%s" % (order, len(values), CODES[descr]), *values)


def write(path, arrays, pack=zipfile.ZIP_STORED):
    """arrays: [(key, bytes of an npy file)]; a key may come twice."""
    with zipfile.ZipFile(path, "w", pack) as file:
        for key, data in arrays:
            file.writestr(key + ".npy", data)
