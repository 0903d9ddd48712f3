"""Options that Pyxis refuses, which its stand-in among srun's options must not take."""

import shlex

import pytest

from rehearsal.containers.options import OptionError, split


def test_what_pyxis_refuses_is_refused() -> None:
    for typed, said in (
        ("--container-image= true", "--container-image: argument required"),
        ("--container-save=/a true", "--container-save: the rehearsal's stand-in for Pyxis does not have it"),
        ("--container-mounts=a:/b true", "--container-mounts: a:/b: the source is not an absolute path"),
    ):
        with pytest.raises(OptionError, match=said):
            split(shlex.split(typed))
