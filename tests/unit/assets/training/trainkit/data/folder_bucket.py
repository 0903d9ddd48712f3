"""A folder in the place of the bucket; a nightly test prepares with a real S3 and the aws program."""

import json
from pathlib import Path

import pytest
from trainkit.data import dataset_bucket
from trainkit.data.dataset_bucket import BucketError, DatasetBucket


def folder_bucket(root: Path, monkeypatch: pytest.MonkeyPatch, *, workload: str) -> DatasetBucket:
    """Return the bucket of a workload, whose objects are the files of a folder."""

    def at(url: str) -> Path:
        return root / url.removeprefix("s3://team/")

    def aws(*arguments: str) -> str:
        if arguments[1] == "head-object":
            file = root / arguments[5]
            if not file.is_file():
                raise BucketError("aws s3api head-object: An error occurred (404) when calling HeadObject")
            return json.dumps({"ContentLength": file.stat().st_size, "Metadata": metadata.get(str(file), {})})
        source, target = arguments[-2:]
        if target == "-":
            return at(source).read_text()
        file = at(target) if target.startswith("s3://") else Path(target)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes((at(source) if source.startswith("s3://") else Path(source)).read_bytes())
        if "--metadata" in arguments:
            pairs = arguments[arguments.index("--metadata") + 1].split(",")
            metadata[str(file)] = dict(pair.split("=") for pair in pairs)
        return ""

    metadata: dict[str, dict[str, str]] = {}
    monkeypatch.setattr(dataset_bucket, "_aws", aws)
    monkeypatch.setenv("TRAINING_BUCKET", "team")
    bucket = DatasetBucket.of_workload(workload)
    assert bucket
    return bucket
