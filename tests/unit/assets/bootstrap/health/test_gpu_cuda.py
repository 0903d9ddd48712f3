"""gpu_cuda.py: CUDA's own start, with a library of C in the place of libcuda."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.health.health_node import HEALTH, UNHEALTHY

PROGRAM = HEALTH / "gpu_cuda.py"
UNKNOWN = 1
# Fails as the environment says: CALL=CODE, on the device FAULTY; reports what is freed.
LIBRARY = """
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
typedef unsigned long long pointer;
static __thread int device = -1;
static int fault(const char *call) {
  const char *faulty = getenv("FAULTY"), *code = getenv(call);
  return code && (!faulty || atoi(faulty) == device) ? atoi(code) : 0;
}
int cuInit(unsigned flags) { return flags ? 1 : fault("cuInit"); }
int cuDeviceGetCount(int *count) { *count = atoi(getenv("GPUS")); return 0; }
int cuDeviceGet(int *out, int index) { *out = device = index; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int of) {
  *context = &device;
  return fault("cuDevicePrimaryCtxRetain");
}
int cuCtxSetCurrent(void *context) { return context == &device ? 0 : 201; }
int cuMemAlloc_v2(pointer *out, size_t bytes) {
  *out = (pointer)malloc(bytes);
  return fault("cuMemAlloc_v2");
}
int cuMemsetD8_v2(pointer memory, unsigned char value, size_t bytes) {
  memset((void *)memory, value, bytes);
  return fault("cuMemsetD8_v2");
}
int cuCtxSynchronize(void) { return fault("cuCtxSynchronize"); }
int cuMemFree_v2(pointer memory) {
  free((void *)memory);
  fprintf(stderr, "freed %d\\n", device);
  return 0;
}
int cuGetErrorString(int code, const char **text) {
  *text = code == 802 ? "system not yet initialized" : code == 214 ? "uncorrectable ECC error encountered"
    : code == 46 ? "CUDA-capable device(s) is/are busy or unavailable" : NULL;
  return *text ? 0 : 1;
}
"""
ECC = "CUDA error 214, uncorrectable ECC error encountered"
NO_FABRIC = (
    "CUDA does not start: cuInit fails with CUDA error 802, system not yet initialized (the NVLink fabric is "
    "not ready: is nvidia-fabricmanager running, in the driver's version?)"
)


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(PROGRAM), "8"]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=60)


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler here")
def test_each_failure_of_cuda_has_a_sentence(tmp_path: Path) -> None:
    """A full GPU is no verdict, and every GPU is used and freed."""
    (tmp_path / "cuda.c").write_text(LIBRARY)
    command = ["cc", "-shared", "-fPIC", "-o", f"{tmp_path}/libcuda.so.1", f"{tmp_path}/cuda.c"]
    subprocess.run(command, check=True)
    cannot = "CUDA cannot use GPU"
    busy = "CUDA error 46, CUDA-capable device(s) is/are busy or unavailable"
    for faults, status, sentence in (
        ({}, 0, ""),
        ({"cuInit": "802"}, UNHEALTHY, NO_FABRIC),
        ({"GPUS": "7"}, UNHEALTHY, "CUDA sees 7 of 8 GPUs"),
        ({"cuCtxSynchronize": "214"}, UNHEALTHY, f"{cannot} 0: cuCtxSynchronize fails with {ECC}"),
        ({"cuMemsetD8_v2": "214", "FAULTY": "5"}, UNHEALTHY, f"{cannot} 5: cuMemsetD8_v2 fails with {ECC}"),
        (
            {"cuDevicePrimaryCtxRetain": "46"},
            UNHEALTHY,
            f"{cannot} 0: cuDevicePrimaryCtxRetain fails with {busy}",
        ),
        ({"cuMemAlloc_v2": "2"}, UNKNOWN, ""),
        (
            {"cuMemAlloc_v2": "719"},
            UNHEALTHY,
            f"{cannot} 0: cuMemAlloc_v2 fails with CUDA error 719, unknown error",
        ),
    ):
        done = run(**{"LD_LIBRARY_PATH": str(tmp_path), "GPUS": "8"} | faults)
        assert (done.returncode, done.stdout.strip()) == (status, sentence), done
        if not faults:
            assert sorted(done.stderr.split("\n")) == ["", *(f"freed {n}" for n in range(8))]


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(has_driver(), reason="this machine has a GPU's driver")
def test_a_missing_driver_is_no_verdict() -> None:
    done = run(LD_LIBRARY_PATH="/nowhere")
    assert (done.returncode, done.stdout) == (UNKNOWN, ""), done.stderr
    assert "the driver's library cannot be loaded" in done.stderr
