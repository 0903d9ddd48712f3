"""Samples of changes, of which docs/changes.md consists; test_docs_pages.py renders it, with each flag."""

from ops.asset_code import asset_code
from tools.docs.flag_changes import SAMPLES, configs
from training_cluster.flags.flag import facts_of
from training_cluster.flags.settings import Settings
from training_cluster.rules.context import read_settings


def test_a_sample_changes_its_flag_and_no_other() -> None:
    for sample in SAMPLES:
        before, after = (read_settings(each) for each in (sample.before, sample.after))
        changed = {n for n in Settings.model_fields if getattr(before, n) != getattr(after, n)}
        alone = changed - {"accounting_secret"} or changed  # it comes with accounting, and alone
        assert alone == {sample.flag}, sample


def test_the_page_says_what_the_provider_keeps() -> None:
    for sample in SAMPLES:
        refused = asset_code("cluster_provider", "immutable").immutable.changes(*configs(sample))
        assert bool(refused) is bool(facts_of(Settings.model_fields[sample.flag]).on_change), sample
        assert all(sample.flag in each.flags for each in refused), sample
