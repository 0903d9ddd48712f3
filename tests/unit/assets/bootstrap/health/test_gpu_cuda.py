"""gpu_cuda.py: CUDA's own start, with a library in the place of libcuda."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.health.health_node import HEALTH, UNHEALTHY

PROGRAM = HEALTH / "gpu_cuda.py"
UNKNOWN = 1
NAMES = {2: "out of memory", 46: "CUDA-capable device(s) is/are busy or unavailable"}
NAMES |= {214: "uncorrectable ECC error encountered", 802: "system not yet initialized"}
# Fails as the environment says: CALL=CODE, on the device FAULTY; counts what is allocated and freed.
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
    : code == 2 ? "out of memory" : code == 46 ? "CUDA-capable device(s) is/are busy or unavailable" : NULL;
  return *text ? 0 : 1;
}
"""
Run = Callable[..., tuple[int, str]]


class FakeCuda:
    """The same library in Python, for machines without a C compiler."""

    def __init__(self, *, gpus: int, faults: dict[str, int]) -> None:
        self.gpus, self.faults = gpus, faults

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: object) -> int:
            if name == "cuDeviceGetCount":
                arguments[0]._obj.value = self.gpus  # type: ignore[attr-defined]
            if name == "cuGetErrorString":
                text = NAMES.get(int(str(arguments[0])))
                arguments[1]._obj.value = text.encode() if text else None  # type: ignore[attr-defined]
            return self.faults.get(name, 0)

        return call


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str, gpus: int = 8, **faults: int) -> tuple[int, str]:
        program: dict[str, object] = {"__name__": "gpu_cuda"}
        exec(compile(PROGRAM.read_text(), PROGRAM, "exec"), program)
        monkeypatch.setattr(ctypes, "CDLL", lambda _: FakeCuda(gpus=gpus, faults=faults))
        monkeypatch.setattr(sys, "argv", ["gpu_cuda.py", *arguments])
        main = program["main"]
        assert callable(main)
        return main(), capsys.readouterr().out.strip()

    return run


@pytest.mark.parametrize(
    ("arguments", "faults", "expected"),
    [
        (["8"], {}, (0, "")),
        (
            ["8"],
            {"cuInit": 802},
            (
                UNHEALTHY,
                "CUDA does not start: cuInit fails with CUDA error 802, system not yet initialized (the "
                "NVLink fabric is not ready: is nvidia-fabricmanager running, in the driver's version?)",
            ),
        ),
        (["8"], {"gpus": 7}, (UNHEALTHY, "CUDA sees 7 of 8 GPUs")),
        (
            ["8"],
            {"cuCtxSynchronize": 214},
            (
                UNHEALTHY,
                "CUDA cannot use GPU 0: cuCtxSynchronize fails with CUDA error 214, uncorrectable ECC error "
                "encountered",
            ),
        ),
        (
            ["8"],
            {"cuDevicePrimaryCtxRetain": 46},
            (
                UNHEALTHY,
                "CUDA cannot use GPU 0: cuDevicePrimaryCtxRetain fails with CUDA error 46, CUDA-capable "
                "device(s) is/are busy or unavailable",
            ),
        ),
        (["8"], {"cuMemAlloc_v2": 2}, (UNKNOWN, "")),
        (
            ["8"],
            {"cuMemAlloc_v2": 719},
            (UNHEALTHY, "CUDA cannot use GPU 0: cuMemAlloc_v2 fails with CUDA error 719, unknown error"),
        ),
    ],
)
def test_each_failure_of_cuda_is_told_and_a_full_gpu_is_no_verdict(
    in_process: Run, arguments: list[str], faults: dict[str, int], expected: tuple[int, str]
) -> None:
    assert in_process(*arguments, **faults) == expected


def has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.mark.skipif(has_driver(), reason="this machine has a GPU's driver")
def test_a_node_without_the_drivers_library_is_no_verdict() -> None:
    done = subprocess.run(
        [sys.executable, "-I", str(PROGRAM), "8"],
        env={"LD_LIBRARY_PATH": "/nowhere"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (UNKNOWN, ""), done.stderr
    assert "the driver's library cannot be loaded" in done.stderr


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler here")
def test_a_library_of_c_is_called_with_its_own_types_on_every_gpu(tmp_path: Path) -> None:
    (tmp_path / "cuda.c").write_text(LIBRARY)
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "cuda.c"], check=True)

    def run(**environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", str(PROGRAM), "8"],
            env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "GPUS": "8", **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )

    done = run()
    assert (done.returncode, done.stdout) == (0, "")
    assert sorted(done.stderr.split("\n")) == ["", *(f"freed {n}" for n in range(8))]
    done = run(cuMemsetD8_v2="214", FAULTY="5")
    assert done.returncode == UNHEALTHY
    assert done.stdout.startswith("CUDA cannot use GPU 5: cuMemsetD8_v2 fails with CUDA error 214, uncorrect")
    done = run(cuInit="802")
    assert done.stdout.startswith(
        "CUDA does not start: cuInit fails with CUDA error 802, system not yet init"
    )
