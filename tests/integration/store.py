# SPDX-License-Identifier: GPL-2.0-or-later
"""systemd's descriptor store in small: what a service hands over by FDSTORE=1 (sd_pid_notify_with_fds(3)) is given to its next
instance by LISTEN_FDS and LISTEN_FDNAMES (sd_listen_fds_with_names(3)), whatever the one before has ended of."""
import array
import fcntl
import os
import socket
import threading
import time

from harness import Daemon, environment, start, until

SHELL = r"""
n=$1; shift
i=3
while [ $i -lt $((n + 3)) ]; do eval "exec $i<&$1 $1<&-"; shift; i=$((i + 1)); done
LISTEN_PID=$$ LISTEN_FDS=$n exec "$@"
"""


class Store:
    count = 0

    def __init__(self):
        Store.count += 1
        self.name = f"flightrec-store-{os.getpid()}-{Store.count}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.bind("\0" + self.name)
        self.fds = []  # (name, fd), oldest first
        self.lines = []  # of all that was said
        self.lock = threading.Lock()
        self.closing = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @property
    def address(self):
        return "@" + self.name

    def run(self):
        self.socket.settimeout(0.1)
        while not self.closing:
            try:
                data, control, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(4 * 64))
            except TimeoutError:
                continue
            fds = array.array("i")
            for level, kind, body in control:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds.frombytes(body[:len(body) // 4 * 4])
            with self.lock:
                self.take(data.decode(errors="replace").splitlines(), list(fds))

    def take(self, lines, fds):
        said = dict(line.split("=", 1) for line in lines if "=" in line)
        self.lines += lines
        if said.get("FDSTORE") == "1":
            for fd in fds:
                high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
                os.close(fd)
                if self.is_new(high):
                    self.fds.append((said["FDNAME"], high))
                else:
                    os.close(high)
            return
        for fd in fds:  # of BARRIER=1 (sd_notify_barrier(3))
            os.close(fd)
        if said.get("FDSTOREREMOVE") == "1":
            for name, fd in self.fds:
                if name == said["FDNAME"]:
                    os.close(fd)
            self.fds = [(name, fd) for name, fd in self.fds if name != said["FDNAME"]]

    def is_new(self, fd):
        """As systemd, which asks kcmp(2): the same open file is stored once."""
        st = os.fstat(fd)
        return all((st.st_dev, st.st_ino) != (o.st_dev, o.st_ino) for o in (os.fstat(f) for _, f in self.fds))

    def names(self):
        with self.lock:
            return sorted(name for name, _ in self.fds)

    def said(self, prefix):
        with self.lock:
            return [line for line in self.lines if line.startswith(prefix)]

    def wait_ready(self, alive, seconds):
        end = time.monotonic() + seconds
        while not self.said("READY=1"):
            if not alive():
                self.settle()
                return bool(self.said("READY=1"))
            assert time.monotonic() < end, f"not ready within {seconds} s"
            time.sleep(0.005)
        return True

    def settle(self):
        """Everything that was said until now is taken: messages come in the order in which they were sent."""
        Store.count += 1
        fence = f"FENCE={Store.count}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(fence.encode(), "\0" + self.name)
        until("end of what was said", lambda: self.said(fence))

    def close(self):
        self.closing = True
        self.thread.join()
        self.socket.close()
        for _, fd in self.fds:
            os.close(fd)
        self.fds = []


class StoredDaemon(Daemon):
    """One instance of a service with a descriptor store."""

    def __init__(self, store, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.store = store

    def start(self, ready_seconds=120):
        self.store.settle()  # of the instance before, too
        with self.store.lock:
            passed = list(self.store.fds)
            self.store.lines = []
        argv, more, fds = self.argv(), {}, [fd for _, fd in passed]
        if passed:
            argv = ["/bin/bash", "-c", SHELL, "bash", str(len(passed)), *map(str, fds), *argv]
            more["LISTEN_FDNAMES"] = ":".join(name for name, _ in passed)
        with open(self.log_path, "wb") as log:
            self.process = start(*argv, stdout=log, stderr=log, pass_fds=fds,
                                 env=environment(NOTIFY_SOCKET=self.store.address, **more, **self.extra_env))
        assert self.store.wait_ready(lambda: self.process.poll() is None, ready_seconds), \
            f"ended with {self.process.returncode} before it was ready:\n{self.log()}"
        return self
