"""Pyxis's options among srun's, as job.slurm and people write them."""

import shlex

import pytest

from rehearsal.containers.options import ContainerOptions, OptionError, split


@pytest.mark.parametrize(
    ("typed", "own", "command"),
    [
        ("--container-image=/a.sqsh hostname", "", "hostname"),
        ("-N 2 --container-image /a.sqsh hostname -f", "-N 2", "hostname -f"),
        ("-N2 -l --container-image=/a.sqsh -n 4 bash -c 'a b'", "-N2 -l -n 4", "bash -c 'a b'"),
        ("--nodes 2 --label --container-image=/a.sqsh -- --odd", "--nodes 2 --label", "--odd"),
        (
            "--kill-on-bad-exit=1 --overlap --container-image=/a.sqsh env --container-name=x",
            "--kill-on-bad-exit=1 --overlap",
            "env --container-name=x",
        ),
    ],
)
def test_the_command_begins_where_srun_says_so(typed: str, own: str, command: str) -> None:
    assert split(shlex.split(typed)) == (
        shlex.split(own),
        ContainerOptions(image="/a.sqsh"),
        shlex.split(command),
    )


def test_options_of_job_slurm_are_read() -> None:
    typed = (
        "--container-image=/a.sqsh --container-name=train-7 --container-mounts=/a:/b,/c:/d:ro "
        "--container-workdir=/w --container-writable --no-container-mount-home --no-container-remap-root "
        "--container-env=A,B true"
    )
    assert split(shlex.split(typed))[1] == ContainerOptions(
        image="/a.sqsh",
        name="train-7",
        mounts=(("/a", "/b", ""), ("/c", "/d", "ro")),
        workdir="/w",
        writable=True,
        env=("A", "B"),
    )


def test_step_without_options_is_left_alone() -> None:
    assert split(["-N1", "true"]) == (["-N1"], ContainerOptions(), ["true"])


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("--container-image= true", "--container-image: argument required"),
        ("--container-save=/a true", "--container-save: the rehearsal's stand-in for Pyxis does not have it"),
        ("--container-mounts=a:/b true", "--container-mounts: a:/b: the source is not an absolute path"),
    ],
)
def test_what_pyxis_refuses_is_refused(typed: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        split(shlex.split(typed))
