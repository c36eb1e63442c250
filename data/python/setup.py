"""`pip install data/python`: the package, with its extension module where Python's headers are.

SPDX-License-Identifier: MIT
"""
import glob
import os
import re

from setuptools import Extension, setup

HERE = os.path.dirname(os.path.abspath(__file__))


def version():
    with open(os.path.join(HERE, "..", "..", "meson.build")) as file:
        return re.search(r"version: *'([^']+)'", file.read()).group(1)


setup(name="tapedeck", version=version(), description="Records PyTorch programs for Tapedeck", license="MIT",
      python_requires=">=3.8", packages=["tapedeck"],
      ext_modules=[Extension("tapedeck._tapedeck", sorted(glob.glob("extension/*.c")),
                             depends=["extension/private.h"], py_limited_api=True, optional=True)],
      options={"bdist_wheel": {"py_limited_api": "cp38"}})
