"""`trainctl verify --nodes` removes what its jobs wrote."""

from typing import Any

import pytest

from ops.verify import node_jobs
from ops.verify.node_jobs import remove_runs
from ops.verify.nodes import run_node_checks
from ops.verify.scene import Scene, open_scene
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.jobs_head_node import PlayedCluster, job_line
from tests.unit.ops.own_account import BUCKET
from tests.unit.ops.verify.deployed import Made, summary
from training_cluster.stack_names import STORAGE_STACK

RUN = "gpt2/verify-0123abcd"
OBJECT = f"checkpoints/{RUN}/step-000200/model"


@pytest.fixture
def bucket(cluster: PlayedCluster, made: Made) -> None:
    """Have the linked bucket after a verification's run and that of somebody."""
    for folder in (f"runs/{RUN}", f"checkpoints/{RUN}", "runs/gpt2/mine", "checkpoints/gpt2/mine"):
        (cluster.shared / folder).mkdir(parents=True)
    cluster.has_log("31", "text")
    cluster.has_log("30", "mine")
    cluster.says("squeue", job_line("COMPLETED"))
    type_ = "AWS::FSx::DataRepositoryAssociation"
    links = [summary(type_, each) for each in made.resources[STORAGE_STACK][type_]]
    cluster.account.answers["ListStackResources"] = {"StackResourceSummaries": links}
    cluster.account.real = True
    s3 = cluster.client("s3")
    for key in (OBJECT, "checkpoints/gpt2/mine/step-000200/model"):
        s3.put_object(Bucket=BUCKET, Key=key)


def objects() -> set[str]:
    """Return the keys of all versions in the folder of checkpoints."""
    s3 = Account(real=True).client("s3")
    found = s3.list_object_versions(Bucket=BUCKET, Prefix="checkpoints/")
    return {each["Key"] for each in (*found["Versions"], *found.get("DeleteMarkers", []))}


def scene_of(cluster: PlayedCluster) -> tuple[Scene, list[str]]:
    said: list[str] = []
    scene = open_scene("training", cluster.client, said.append, nodes=2)
    scene.jobs.append(("31", RUN))
    return scene, said


def there(cluster: PlayedCluster) -> set[str]:
    names = ("runs/*/*", "checkpoints/*/*", "runs/job-*")
    return {str(path.relative_to(cluster.shared)) for name in names for path in cluster.shared.glob(name)}


MINE = {"runs/gpt2/mine", "checkpoints/gpt2/mine", "runs/job-30.log"}


def test_only_the_run_of_the_check_is_removed(cluster: PlayedCluster, bucket: None) -> None:
    scene, said = scene_of(cluster)
    remove_runs(scene, keep_output=False)
    assert there(cluster) == MINE
    assert (objects(), said) == ({"checkpoints/gpt2/mine/step-000200/model"}, [])


def test_output_is_kept_when_a_check_differs(cluster: PlayedCluster, bucket: None) -> None:
    scene, said = scene_of(cluster)
    remove_runs(scene, keep_output=True)
    assert there(cluster) == MINE | {"runs/job-31.log"}
    assert said == ["kept: trainctl logs 31, since a check of the nodes did not hold"]
    assert OBJECT not in objects()


def test_a_job_still_saving_a_checkpoint_is_awaited(
    cluster: PlayedCluster, bucket: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = ["COMPLETED"]

    def save(_seconds: float) -> None:
        assert f"checkpoints/{RUN}" in there(cluster)
        cluster.says("squeue", job_line(states.pop()))

    cluster.says("squeue", job_line("COMPLETING"))
    monkeypatch.setattr(node_jobs, "_POLL_S", 0)
    monkeypatch.setattr(node_jobs, "_sleep", save)
    remove_runs(scene_of(cluster)[0], keep_output=False)
    assert states == []
    assert OBJECT not in objects()


def test_what_cannot_be_removed_is_named(cluster: PlayedCluster, bucket: None) -> None:
    cluster.account.answers["ListObjectVersions"] = Refused("AccessDenied", "no")
    scene, said = scene_of(cluster)
    remove_runs(scene, keep_output=False)
    assert said == [f"not removed: runs/{RUN} and checkpoints/{RUN} of job 31; remove them by hand"]
    assert OBJECT in objects()


def test_ctrl_c_during_the_checks_removes_too(
    cluster: PlayedCluster, bucket: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ops.verify.nodes.run_job", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_node_checks(scene_of(cluster)[0])
    assert there(cluster) == MINE
    assert OBJECT not in objects()


def test_runs_of_other_names_are_refused(cluster: PlayedCluster, bucket: None) -> None:
    scene, said = scene_of(cluster)
    scene.jobs[:] = [("30", "gpt2/mine")]
    remove_runs(scene, keep_output=False)
    assert there(cluster) >= MINE
    assert said == ["not removed: runs/gpt2/mine and checkpoints/gpt2/mine of job 30; remove them by hand"]
    assert OBJECT in objects()


def test_files_of_unfinished_jobs_are_left_and_named(
    cluster: PlayedCluster, bucket: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.says("squeue", job_line("COMPLETING"))
    monkeypatch.setattr(node_jobs, "_MOST_WAIT_S", 0)
    scene, said = scene_of(cluster)
    remove_runs(scene, keep_output=False)
    assert said == [f"not removed: runs/{RUN} and checkpoints/{RUN} of job 31; remove them by hand"]
    assert f"checkpoints/{RUN}" in there(cluster)
    assert OBJECT in objects()
