# Runs a command in a world where something does not work: `faulty.py WHAT COMMAND…`.
import ctypes, errno, os, resource, signal, struct, sys

what, command = sys.argv[1], sys.argv[2:]

# System calls by machine: fsync, fdatasync, sync_file_range, mount, unshare, setns.
CALLS = {
    "x86_64": (74, 75, 277, 165, 272, 308),
    "aarch64": (82, 83, 84, 40, 97, 268),
}[os.uname().machine]


def refuse(numbers, code):
    """A filter that answers these system calls with an error, for this process and all it starts."""
    program = [struct.pack("HBBI", 0x20, 0, 0, 0)]  # load the number of the call
    for number in numbers:
        program.append(struct.pack("HBBI", 0x15, 0, 1, number))  # not this one: skip the answer
        program.append(struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | code))  # this one: an error
    program.append(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))  # everything else: allowed
    text = b"".join(program)
    buffer = ctypes.create_string_buffer(text)
    filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter, 0, 0):
        sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")


if what == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
elif what == "no-sync":
    refuse(CALLS[:3], errno.EIO)
elif what == "no-walls":
    refuse(CALLS[3:], errno.EPERM)
else:
    sys.exit(f"nothing is called {what}")
os.execvp(command[0], command)
