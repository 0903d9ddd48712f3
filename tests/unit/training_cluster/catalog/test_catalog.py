"""The catalog's files that all families share: base.yaml, prices, quotas."""

import re
import shutil
from pathlib import Path

import pytest

from training_cluster.catalog.families import CATALOG, load_base
from training_cluster.problems import ConfigurationError


def _copy(tmp_path: Path) -> Path:
    return shutil.copytree(CATALOG, tmp_path / "catalog")


def test_a_key_that_is_no_text_is_named(tmp_path: Path) -> None:
    catalog = _copy(tmp_path)
    (catalog / "base.yaml").write_text(f"{(CATALOG / 'base.yaml').read_text()}\n7: x\n")
    with pytest.raises(ConfigurationError, match=r"base\.yaml: 1 problem.*\n  7: .*string"):
        load_base(catalog)


@pytest.mark.parametrize(
    ("file", "key", "wrong"),
    [
        ("base.yaml", "shared_dir", "shared_dri"),
        ("prices.yaml", "s3_gb_month", "s3_gb_mnth"),
        ("quotas.yaml", "nat_gateways", "nat_gatewys"),
    ],
)
def test_the_shared_files_are_strict_too(tmp_path: Path, file: str, key: str, wrong: str) -> None:
    catalog = _copy(tmp_path)
    (catalog / file).write_text((CATALOG / file).read_text().replace(key, wrong))
    with pytest.raises(ConfigurationError, match=re.escape(f'Did you mean "{key}"?')) as raised:
        load_base(catalog)
    assert str(raised.value).startswith(f"{file}: ")
