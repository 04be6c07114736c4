#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that the includes of the folders and files of src/ form no circle.

One file of this graph is X.c, X.h and their private header (X_private.h, X_internal.h). If there are circles, prints them and
exits with 1. --print shows the arrows between the folders from the top down.
"""
import argparse
import collections
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
PRIVATE = re.compile(r"_(private|internal)$")


def name_of(path):
    """Returns the file to which PATH belongs, for example dump/frames for src/dump/frames_private.h. The private header of a
    folder X belongs to X/X."""
    stem = PRIVATE.sub("", path.stem) if path.stem not in ("internal", "private") else path.parent.name
    return f"{path.parent.name}/{stem}"


def read_graph(root):
    paths = [p for p in sorted(root.glob("*/*")) if p.suffix in (".c", ".h") and not p.name.endswith(".bpf.c")]
    files = collections.defaultdict(set)
    for path in paths:
        files[name_of(path)]  # makes a node also for a file without includes
        for include in INCLUDE.findall(path.read_text()):
            target = root / include
            if target.exists() and name_of(target) != name_of(path):
                files[name_of(path)].add(name_of(target))
    folders = collections.defaultdict(set)
    for name, targets in files.items():
        folder = name.split("/")[0]
        folders[folder] |= {t.split("/")[0] for t in targets} - {folder}
    return files, folders


def find_circles(graph):
    """Returns the strongly connected components that have more than one node, by Tarjan's algorithm."""
    index, low, stack, circles = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in graph.get(node, ()):
            if target not in index:
                visit(target)
            if target in stack:
                low[node] = min(low[node], low[target])
        if low[node] == index[node]:
            at = stack.index(node)
            component = stack[at:]
            del stack[at:]
            if len(component) > 1:
                circles.append(sorted(component))

    sys.setrecursionlimit(10000)
    for node in list(graph):
        if node not in index:
            visit(node)
    return circles


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", default="src", type=pathlib.Path)
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    files, folders = read_graph(options.root)
    circles = find_circles(folders) + find_circles(files)
    for circle in circles:
        print("circle:", " ".join(circle))
    if options.print:
        left = dict(folders)
        while left:
            ready = sorted(f for f in left if not (left[f] & set(left))) or sorted(left)
            for folder in ready:
                print(f"{folder:16} -> {' '.join(sorted(left.pop(folder)))}")
    print(f"{len(files)} files, {len(folders)} folders, {len(circles)} circles")
    return 1 if circles else 0


if __name__ == "__main__":
    sys.exit(main())
