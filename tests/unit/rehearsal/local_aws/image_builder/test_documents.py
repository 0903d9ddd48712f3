"""Documents of Image Builder's components: what the local AWS takes and refuses, as AWS does."""

import re
from typing import Any

import pytest
import yaml

from rehearsal.local_aws.image_builder.documents import DocumentError, missing_parameters, read
from training_cluster.paths import ASSETS, ROOT

OURS = sorted((ASSETS / "images").glob("*.yaml"))
# ParallelCluster's own components, which AWS takes.
THEIRS = sorted(ROOT.glob(".venv-pcluster/lib/python*/site-packages/pcluster/resources/imagebuilder/*.yaml"))


def step(name: str = "Do", *, action: str = "ExecuteBash", **more: Any) -> dict[str, Any]:
    return {"name": name, "action": action, "inputs": {"commands": ["true"]}, **more}


def document(*steps: dict[str, Any], phase: str = "build", **more: Any) -> str:
    phases = [{"name": phase, "steps": list(steps or [step()])}]
    return yaml.safe_dump({"schemaVersion": 1.0, "phases": phases, **more})


def test_documents_that_aws_takes_are_taken() -> None:
    assert OURS
    assert len(THEIRS) > 3
    assert all(read(path.read_text())["phases"] for path in (*OURS, *THEIRS))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("a: [", "is not YAML"),
        ("- a", "is not a mapping"),
        (document(schemaVersion=2), "schemaVersion is 2, not 1.0"),
        (document(phases=[]), "the phases are []; at least one of"),
        (document(phase="install"), "are ['install']; at least one of ['build', 'test', 'validate']"),
        (document(phases=2 * yaml.safe_load(document())["phases"]), "a phase's name occurs twice"),
        (document(phases=[{"name": "build", "steps": []}]), "build: it has no steps"),
        (document(step(), step()), "a step's name occurs twice"),
        (document(step(action="ExecuteShell")), "build.Do: there is no action ExecuteShell on Linux"),
        (document(step(timeout=3)), "build.Do: a step cannot have ['timeout']"),
        (document(step(timeoutSeconds="3 s")), "timeoutSeconds is '3 s', not a number"),
        (document(step(onFailure="Retry")), "onFailure is Retry"),
        (document(step(inputs={"commands": []})), "ExecuteBash lacks ['commands']"),
        (document(step(inputs={"commands": "true"})), "commands is not a list of strings"),
        (document(step(action="S3Download", inputs=[{"source": "s3://a"}])), "lacks ['destination']"),
        (
            document(step(inputs={"commands": ["echo {{ Recipe }}"]})),
            "build.Do: {{ Recipe }} is not a parameter, constant or output of a step",
        ),
    ],
)
def test_a_wrong_document_is_refused_with_the_place(data: str, words: str) -> None:
    with pytest.raises(DocumentError, match=re.escape(words)):
        read(data)


def test_parameters_are_given_or_have_a_default() -> None:
    parameters = [{"Recipe": {"type": "string"}}, {"Speed": {"type": "string", "default": "1"}}]
    found = read(document(step(inputs={"commands": ["echo {{ Recipe }}"]}), parameters=parameters))
    assert missing_parameters(found, {"Recipe"}) == ""
    assert missing_parameters(found, set()) == "parameters without a value: Recipe"
    assert missing_parameters(found, {"Recipe", "Colour"}).endswith("does not declare: Colour")
