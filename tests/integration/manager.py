# SPDX-License-Identifier: GPL-2.0-or-later
"""A small service manager: it receives what sd_notify() sends, and has a descriptor store like that of systemd.

A service stores descriptors with FDSTORE=1 (sd_pid_notify_with_fds(3)). Its next instance gets them by LISTEN_FDS and
LISTEN_FDNAMES (sd_listen_fds_with_names(3)). The next instance gets them even if the previous instance was killed."""
import array
import ctypes
import fcntl
import os
import platform
import select
import socket
import threading
import time

# A shell script. It moves the descriptors to 3 and higher numbers, sets LISTEN_PID to its own pid, and executes the service,
# which keeps this pid.
PASS_DESCRIPTORS = r"""
n=$1; shift
i=3
while [ $i -lt $((n + 3)) ]; do eval "exec $i<&$1 $1<&-"; shift; i=$((i + 1)); done
LISTEN_PID=$$ LISTEN_FDS=$n exec "$@"
"""


KCMP = {"x86_64": 312, "aarch64": 272}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)


class ServiceManager:
    count = 0

    def __init__(self):
        ServiceManager.count += 1
        # The name of an abstract socket, which makes no file.
        self.name = f"flightrec-manager-{os.getpid()}-{ServiceManager.count}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.socket.bind("\0" + self.name)
        self.fds = []  # (name, fd), the oldest first
        self.lines = []  # lines that the current instance has sent
        self.limit = None  # FileDescriptorStoreMax=
        self.thread = threading.Thread(target=self.receive, daemon=True)
        self.thread.start()

    def receive(self):
        """The function of the thread. The thread receives all the time, so that no sender has to wait."""
        while True:
            data, control, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(4 * 253))
            fds = array.array("i")
            for level, kind, body in control:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds.frombytes(body[:len(body) // 4 * 4])
            if data == b"END":
                return
            self.handle(data.decode(errors="replace").splitlines(), list(fds))

    def send(self, text):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(text.encode(), "\0" + self.name)

    def handle(self, lines, fds):
        fields = dict(line.split("=", 1) for line in lines if "=" in line)
        if fields.get("FDSTORE") == "1":
            for fd in fds:
                high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
                has_room = self.limit is None or len(self.fds) < self.limit
                if has_room and self.is_new(high) and (fields.get("FDPOLL") == "0" or not self.has_error(high)):
                    self.fds.append((fields["FDNAME"], high))
                else:
                    os.close(high)
        elif fields.get("FDSTOREREMOVE") == "1":
            self.remove(fields["FDNAME"])
        for fd in fds:  # also the descriptor of BARRIER=1: closing it ends sd_notify_barrier(3)
            os.close(fd)
        self.lines += lines

    def remove(self, name):
        gone = [fd for n, fd in self.fds if n == name]
        self.fds = [(n, fd) for n, fd in self.fds if n != name]
        for fd in gone:
            os.close(fd)

    def is_new(self, fd):
        """Returns whether the file of FD is not yet stored. systemd also stores a file only once, and compares files by
        kcmp(2), too. (All BPF objects have the same inode.)"""
        return all(libc.syscall(KCMP, os.getpid(), os.getpid(), 0, fd, other) != 0 for _, other in self.fds)

    @staticmethod
    def has_error(fd):
        """Returns whether systemd would drop the descriptor: without FDPOLL=0, it polls it, and drops it if there is an error."""
        with select.epoll() as e:
            try:
                e.register(fd, 0)
            except PermissionError:
                return False
            return bool(e.poll(0))

    def next_instance(self, argv):
        """Returns the command line, environment and descriptors with which systemd would start the next instance."""
        self.settle()  # waits until all messages of the previous instance are handled
        passed, self.lines = list(self.fds), []
        fds, env = [fd for _, fd in passed], {"NOTIFY_SOCKET": "@" + self.name}
        if passed:
            argv = ["/bin/bash", "-c", PASS_DESCRIPTORS, "bash", str(len(passed)), *map(str, fds), *argv]
            env["LISTEN_FDNAMES"] = ":".join(name for name, _ in passed)
        return argv, env, fds

    def names(self):
        """Returns the names of the stored descriptors, sorted."""
        return sorted(name for name, _ in list(self.fds))

    def said(self, prefix):
        """Returns the lines of the current instance that begin with PREFIX."""
        return [line for line in list(self.lines) if line.startswith(prefix)]

    def status(self):
        """Returns the text of the newest STATUS=, or an empty string."""
        return next((x.removeprefix("STATUS=") for x in reversed(self.said("STATUS="))), "")

    def settle(self):
        """Waits until all messages that were sent before this call are handled. To do this, it sends a message itself and waits
        for it, because messages arrive in the order in which they were sent."""
        ServiceManager.count += 1
        fence = f"FENCE={ServiceManager.count}"
        self.send(fence)
        self.wait_for(lambda: self.said(fence))

    def until_fed(self, times):
        """Waits until the watchdog has been fed TIMES more times."""
        before = len(self.said("WATCHDOG=1"))
        self.wait_for(lambda: len(self.said("WATCHDOG=1")) >= before + times)

    @staticmethod
    def wait_for(condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"the recorder did not say it within {seconds} s"
            time.sleep(0.005)

    def close(self):
        """Ends the thread and closes all descriptors. A second call does nothing."""
        if self.thread.is_alive():
            self.send("END")
            self.thread.join()
            self.socket.close()
            for name in self.names():
                self.remove(name)
