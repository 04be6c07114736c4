#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Requests that cross machines, and are sometimes slow, for ./dev fleet.

    slow-request.py serve ADDRESS    the data base: every 7 s, it rebuilds its index for 1 s, and requests wait meanwhile
    slow-request.py ask ADDRESS      four clients, each with one request after the other; says which were slow
"""
import socket
import sys
import threading
import time

PORT = 8000
REBUILD_EVERY, REBUILD = 7.0, 1.0
CLIENTS = 4
SLOW = 0.1

index_lock = threading.Lock()


def rebuild_index():
    while True:
        time.sleep(REBUILD_EVERY)
        with index_lock:
            end = time.monotonic() + REBUILD
            while time.monotonic() < end:
                sum(range(1000))


def answer(connection):
    with connection:
        while connection.recv(64):
            with index_lock:
                connection.sendall(b"found\n")


def serve(address):
    threading.Thread(target=rebuild_index, daemon=True).start()
    with socket.create_server((address, PORT)) as server:
        print("serving", flush=True)
        while True:
            threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()


def ask(address):
    for _ in range(CLIENTS - 1):
        threading.Thread(target=ask_one, args=(address,), daemon=True).start()
    ask_one(address)


def ask_one(address):
    with socket.create_connection((address, PORT)) as connection:
        while True:
            begin = time.monotonic()
            connection.sendall(b"where?\n")
            connection.recv(64)
            if time.monotonic() - begin > SLOW:
                print(f"a request took {(time.monotonic() - begin) * 1000:.0f} ms", flush=True)
            time.sleep(0.005)


if __name__ == "__main__":
    {"serve": serve, "ask": ask}[sys.argv[1]](sys.argv[2])
