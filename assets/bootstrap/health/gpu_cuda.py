"""Allocates and writes a MiB of every GPU's memory through the driver's own library, libcuda.

    python3 -I gpu_cuda.py GPUS

Called by checks/14-gpu-cuda.sh, as root, while no program runs on the GPUs. GPUS is the number that the
instance type has. Prints one sentence and exits with 9 if the node is unhealthy, 1 if it could not tell
(no library, or a GPU that a program has filled meanwhile), 0 if all GPUs work. Only the standard library.
"""

from __future__ import annotations

import ctypes
import sys
import threading

UNHEALTHY, UNKNOWN = 9, 1
MIB = 1 << 20
_OUT_OF_MEMORY, _NOT_READY, _MISMATCH = 2, 802, 803
_HINTS = {
    _NOT_READY: "the NVLink fabric is not ready: is nvidia-fabricmanager running, in the driver's version?",
    _MISMATCH: "libcuda and the loaded driver have different versions",
}


class CudaError(Exception):
    """A call of libcuda that failed."""

    def __init__(self, cuda: ctypes.CDLL, call: str, code: int) -> None:
        words = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(words))
        text = words.value.decode() if words.value else "unknown error"
        hint = f" ({_HINTS[code]})" if code in _HINTS else ""
        super().__init__(f"{call} fails with CUDA error {code}, {text}{hint}")
        self.code = code


class Cuda:
    """The driver's library; each call raises CudaError if it fails."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the library by its name."""
        if code := getattr(self.library, name)(*arguments):
            raise CudaError(self.library, name, code)

    def count(self) -> int:
        """Start CUDA, and return the number of GPUs that it sees."""
        number = ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGetCount", ctypes.byref(number))
        return number.value

    def use(self, index: int) -> None:
        """Allocate, write and free a MiB of one GPU's memory."""
        device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuDeviceGet", ctypes.byref(device), index)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(MIB))
        self.call("cuMemsetD8_v2", memory, ctypes.c_ubyte(1), ctypes.c_size_t(MIB))
        self.call("cuCtxSynchronize")
        self.call("cuMemFree_v2", memory)


def use_all(cuda: Cuda, count: int) -> dict[int, CudaError]:
    """Use all GPUs at once, each in a thread, since a context takes some tenths of a second.

    Returns:
        The failure of each GPU that failed.
    """
    failed: dict[int, CudaError] = {}

    def use(index: int) -> None:
        try:
            cuda.use(index)
        except CudaError as error:
            failed[index] = error

    threads = [threading.Thread(target=use, args=(index,)) for index in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return failed


def main() -> int:
    """Judge this node; return the exit status."""
    wanted = int(sys.argv[1])
    try:
        cuda = Cuda()
    except OSError as error:
        print(f"the driver's library cannot be loaded: {error}", file=sys.stderr)
        return UNKNOWN
    try:
        count = cuda.count()
    except CudaError as error:
        print(f"CUDA does not start: {error}")
        return UNHEALTHY
    if count != wanted:
        print(f"CUDA sees {count} of {wanted} GPUs")
        return UNHEALTHY
    failed = use_all(cuda, count)
    faults = {index: error for index, error in failed.items() if error.code != _OUT_OF_MEMORY}
    if faults:
        first = min(faults)
        print(f"CUDA cannot use GPU {first}: {faults[first]}")
        return UNHEALTHY
    if failed:
        print("a program has filled a GPU meanwhile", file=sys.stderr)
        return UNKNOWN
    return 0


if __name__ == "__main__":
    sys.exit(main())
