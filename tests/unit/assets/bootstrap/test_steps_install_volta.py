"""Steps 30 and 32: NVIDIA's proprietary driver, GDRCopy's module for it, and the last CUDA with Volta."""

from pathlib import Path

import pytest

from tests.unit.assets.bootstrap.step_machine import APT, KERNEL, Machine, fails, succeeds

DRIVER = """#!/bin/sh
echo "installer CC=$CC $*" >>"$ROOT/../calls"
echo "$NVIDIA_DRIVER_VERSION" >"$ROOT/version"
echo NVIDIA >"$ROOT/license"
"""


PACKAGES = """\
nvidia-open 595.71.05-1ubuntu1
nvidia-driver-pinning-595.71.05 595-1
libnvidia-compute:amd64 595.71.05-1ubuntu1
nvidia-fabricmanager 595.71.05-1
nvidia-container-toolkit 1.19.0-1
datacenter-gpu-manager-4-core 1:4.4.1-1
cuda-toolkit-13-2 13.2.2-1
"""
GDRDRV = f"-m gdrdrv -v 2.5.1 -k {KERNEL}"
# It compiles GDRCopy's module for the flavour of the driver whose sources it is given.
DKMS = """
if [[ $1 == install ]]; then
  echo "from ${NVIDIA_SRC_DIR#"$ROOT"}" >>"$ROOT/../calls"
  echo "GDRCopy kernel-mode driver built for proprietary NVIDIA driver" >"$ROOT/description"
fi
"""


@pytest.fixture
def volta(machine: Machine) -> Machine:
    """ParallelCluster's AMI: the open modules of a newer branch and GDRCopy for them, all of packages."""
    (machine.root / "version").write_text("595.71.05\n")
    (machine.root / "license").write_text("Dual MIT/GPL\n")
    (machine.root / "description").write_text(
        "GDRCopy kernel-mode driver built for opensource NVIDIA driver\n"
    )
    (machine.root / "packages").write_text(PACKAGES)
    (machine.root / "lib" / "modules" / KERNEL / "build").mkdir(parents=True)
    (machine.root / "usr" / "src" / "gdrdrv-2.5.1").mkdir(parents=True)
    machine.program("modinfo", 'cat "$ROOT/$4"')
    machine.program("dpkg-query", 'cat "$ROOT/packages"')
    machine.program("apt-get", 'if [[ $* == *gdrdrv-dkms ]]; then rm -r "$ROOT"/usr/src/gdrdrv-*; fi')
    machine.program("dkms", DKMS)
    for name in ("systemctl", "gcc-13"):
        machine.program(name)
    machine.environment["NVIDIA_DRIVER_SHA256"] = machine.serve(DRIVER)
    return machine


def test_the_open_driver_is_replaced_by_the_proprietary_one_of_the_last_branch_with_volta(
    volta: Machine,
) -> None:
    succeeds(volta.run("30", RECIPE="volta"))
    url = volta.environment["NVIDIA_DRIVER_URL"]
    file = volta.opt / "src" / "nvidia-driver-580.159.04.run"
    assert volta.calls() == [
        "curl --fail --location --silent --show-error --retry 5 --retry-delay 2 --connect-timeout 20"
        f" --output {file}.part {url}",
        "systemctl cat nvidia-fabricmanager",
        "systemctl disable --now nvidia-fabricmanager",
        "systemctl cat nvidia-imex",
        "systemctl disable --now nvidia-imex",
        f"{APT} purge -y --allow-change-held-packages"
        " nvidia-open libnvidia-compute:amd64 nvidia-fabricmanager",
        "installer CC=gcc-13 --silent --dkms --disable-nouveau --no-cc-version-check"
        f" --kernel-module-type=proprietary --kernel-name={KERNEL}",
        f"dkms remove {GDRDRV}",
        f"dkms install {GDRDRV}",
        "from /usr/src/nvidia-580.159.04/nvidia",
    ]
    assert not file.exists()
    before = volta.files()
    succeeds(volta.run("30", RECIPE="volta"))
    assert (volta.calls(), volta.files()) == ([], before)


def test_the_packages_of_amazon_linux_are_removed_without_what_they_brought_along(volta: Machine) -> None:
    (volta.bin / "apt-get").unlink()
    volta.program("rpm", 'sed "s/:amd64//" "$ROOT/packages"')
    volta.program("dnf")
    succeeds(volta.run("30"))
    assert (
        "dnf remove -y -q --noautoremove nvidia-open libnvidia-compute nvidia-fabricmanager" in volta.calls()
    )


def test_the_headers_of_amazon_linuxs_newer_kernel_have_its_name(volta: Machine) -> None:
    kernel = "6.12.58-82.121.amzn2023.x86_64"
    (volta.bin / "apt-get").unlink()
    volta.program("uname", f"echo {kernel}")
    volta.program("rpm", 'sed "s/:amd64//" "$ROOT/packages"')
    volta.program("dnf")
    succeeds(volta.run("30"))
    assert f"dnf install -y -q kernel6.12-devel-{kernel}" in volta.calls()


def test_a_driver_of_nvidias_installer_is_removed_by_its_own_uninstaller(volta: Machine) -> None:
    (volta.root / "packages").write_text("nvidia-container-toolkit 1.19.0-1\n")
    volta.program("nvidia-uninstall")
    succeeds(volta.run("30"))
    calls = volta.calls()
    assert "nvidia-uninstall --silent" in calls
    assert not any(call.startswith("apt-get") for call in calls)


def test_packages_that_stay_are_an_error(volta: Machine) -> None:
    volta.program("apt-get", "exit 100")
    fails(volta.run("30"), "could not remove the driver 595.71.05 of the AMI")
    assert not any(call.startswith("installer") for call in volta.calls())


def test_an_ami_without_driver_gets_it_all_the_same(volta: Machine) -> None:
    (volta.root / "version").unlink()
    succeeds(volta.run("30"))
    calls = volta.calls()
    assert any(call.startswith("installer") for call in calls)
    assert not any(call.startswith("apt-get") for call in calls)


def test_gdrcopy_is_compiled_by_the_next_run_where_one_was_interrupted(volta: Machine) -> None:
    succeeds(volta.run("30"))
    volta.calls()
    (volta.root / "description").unlink()
    succeeds(volta.run("30"))
    assert [call for call in volta.calls() if not call.startswith("from")] == [
        f"dkms remove {GDRDRV}",
        f"dkms install {GDRDRV}",
    ]


@pytest.mark.parametrize(
    "dkms",
    [
        'if [[ $1 == install ]]; then echo "Bad return status for module build" >&2; exit 10; fi',
        "exit 0",  # compiled, but for the flavour of before
    ],
)
def test_gdrcopy_that_does_not_fit_the_driver_is_removed_with_its_service(volta: Machine, dkms: str) -> None:
    volta.program("dkms", dkms)
    done = volta.run("30")
    succeeds(done)
    assert "GDRCopy could not be compiled for driver 580.159.04, and is removed" in done.stderr
    assert volta.calls()[-1] == f"{APT} purge -y gdrdrv-dkms"
    succeeds(volta.run("30"))
    assert volta.calls() == []


def test_gdrcopy_that_stays_although_it_does_not_fit_is_an_error(volta: Machine) -> None:
    volta.program("dkms", "exit 1")
    volta.program("apt-get", "if [[ $* == *gdrdrv-dkms ]]; then exit 100; fi")
    fails(volta.run("30"), "GDRCopy could not be removed", "terminate the node")


def test_an_ami_without_gdrcopy_needs_none(volta: Machine) -> None:
    (volta.root / "usr" / "src" / "gdrdrv-2.5.1").rmdir()
    succeeds(volta.run("30"))
    assert not any(call.startswith("dkms") for call in volta.calls())


def test_the_open_modules_of_the_right_version_are_not_enough(volta: Machine) -> None:
    (volta.root / "version").write_text("580.159.04\n")
    succeeds(volta.run("30"))
    assert any(call.startswith("installer") for call in volta.calls())


def test_a_driver_that_does_not_stay_is_an_error(volta: Machine) -> None:
    volta.environment["NVIDIA_DRIVER_SHA256"] = volta.serve("#!/bin/sh\n")
    fails(volta.run("30"), f"kernel {KERNEL} has no proprietary NVIDIA driver 580.159.04")


def test_a_driver_of_another_checksum_is_not_run(volta: Machine) -> None:
    volta.serve(DRIVER.replace("NVIDIA", "EVIL"))
    fails(volta.run("30"), "its SHA-256 is not " + volta.environment["NVIDIA_DRIVER_SHA256"])
    assert not any(call.startswith(("installer", "nvidia-uninstall")) for call in volta.calls())
    assert list((volta.opt / "src").iterdir()) == []


def test_a_driver_whose_checksum_nobody_knows_is_not_even_fetched(volta: Machine) -> None:
    fails(volta.run("30", NVIDIA_DRIVER_SHA256=""), "no SHA-256 of", "versions.yaml")
    assert volta.calls() == []


def test_a_killed_download_leaves_nothing_that_a_second_run_would_take(volta: Machine) -> None:
    sha256 = volta.serve(DRIVER, killed=True)
    fails(volta.run("30", NVIDIA_DRIVER_SHA256=sha256), "could not fetch")
    assert [path.suffix for path in (volta.opt / "src").iterdir()] == [".part"]
    assert not any(call.startswith("installer") for call in volta.calls())
    volta.serve(DRIVER)
    succeeds(volta.run("30", NVIDIA_DRIVER_SHA256=sha256))
    assert list((volta.opt / "src").iterdir()) == []


def test_a_driver_branch_without_volta_is_refused(volta: Machine) -> None:
    fails(
        volta.run("30", NVIDIA_DRIVER_VERSION="590.48.01"), "does not support Volta", "the last branch is 580"
    )
    assert volta.calls() == []


TOOLKIT = """#!/bin/sh
echo "installer $*" >>"$ROOT/../calls"
mkdir -p "$ROOT/usr/local/cuda-12.6/bin"
printf '#!/bin/sh\\necho "release 12.6, V12.6.85"\\n' >"$ROOT/usr/local/cuda-12.6/bin/nvcc"
chmod 755 "$ROOT/usr/local/cuda-12.6/bin/nvcc"
"""


def test_the_volta_toolkit_is_installed_beside_the_amis_and_taken(machine: Machine) -> None:
    current = machine.root / "usr" / "local" / "cuda"
    (current.parent / "cuda-13.2").mkdir(parents=True)
    current.symlink_to("/usr/local/cuda-13.2")
    sha256 = machine.serve(TOOLKIT)
    succeeds(machine.run("32", CUDA_TOOLKIT_SHA256=sha256))
    fetched, installed = machine.calls()
    assert fetched.endswith(machine.environment["CUDA_TOOLKIT_URL"])
    toolkit = machine.root / "usr" / "local" / "cuda-12.6"
    wanted = f"installer --silent --toolkit --override --no-man-page --toolkitpath={toolkit} --tmpdir="
    assert installed.startswith(wanted)
    assert current.readlink() == Path("/usr/local/cuda-12.6")
    assert list((machine.opt / "src").iterdir()) == []
    before = machine.files()
    succeeds(machine.run("32", CUDA_TOOLKIT_SHA256=sha256))
    assert (machine.calls(), machine.files()) == ([], before)


def test_another_toolkit_in_its_place_is_an_error(machine: Machine) -> None:
    script = TOOLKIT.replace("release 12.6", "release 12.4")
    fails(machine.run("32", CUDA_TOOLKIT_SHA256=machine.serve(script)), "is not the CUDA toolkit 12.6")
