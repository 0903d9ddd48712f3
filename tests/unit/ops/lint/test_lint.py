"""`trainctl lint`: what it looks at in a script and leaves out; each rule, and our own job scripts."""

from pathlib import Path

import pytest

from ops.lint.command import lint, lint_files
from ops.lint.rules import load_rules
from ops.lint.shell import read_subjects
from training_cluster.catalog.yaml_file import read_yaml
from training_cluster.paths import ROOT, TRAINING

OURS = [
    *(file for suffix in ("sh", "slurm") for file in (TRAINING).rglob(f"*.{suffix}")),
    *(ROOT / "ops" / "workload_template").glob("*.sh"),
]

EXAMPLES = read_yaml(Path(__file__).with_name("examples.yaml"))
BAD = [(rule, script) for rule in load_rules() for script in EXAMPLES[rule]["bad"]]
GOOD = [(rule, script) for rule in load_rules() for script in EXAMPLES[rule]["good"]]


def found(script: str) -> list[tuple[int, str]]:
    return [(each.line, each.rule) for each in lint(script, name="job.slurm")]


def texts(script: str, kind: str) -> list[str]:
    return [each.text for each in read_subjects(script) if each.kind == kind]


def test_comments_and_prose_are_left_out() -> None:
    for harmless in (
        "# export FI_PROVIDER=efa",
        "true # FI_PROVIDER=efa srun torchrun train.py",
        "cat <<EOF\nexport FI_PROVIDER=efa\nsrun torchrun train.py\nEOF",
        ": <<'NOTE'\npython -m torch.distributed.launch train.py\nNOTE",
        'echo "export FI_PROVIDER=efa; srun torchrun train.py"',
        'log "the old way: python -m torch.distributed.launch"',
        "grep -q torch.distributed.launch train.sh",
        '[[ $line == *"torch.distributed.launch"* ]]',
        "unset FI_PROVIDER",
        '[[ ${FI_PROVIDER:-} == efa ]] && echo "$FI_PROVIDER"',
        "python - <<'EOF'\nprint(f'{1:>3}')\nFI_PROVIDER = 'efa'\nEOF",
    ):
        assert found(harmless) == []


def test_a_setting_is_found_wherever_it_is_made() -> None:
    for script in (
        "export A=1 FI_PROVIDER=efa",
        "declare -x FI_PROVIDER='efa'",
        "FI_PROVIDER=efa ./train",
        "env A=1 FI_PROVIDER=efa ./train",
        "exec mpirun -x FI_PROVIDER=efa ./train",
        "mpirun -genv FI_PROVIDER=efa ./train",
        "srun --export=ALL,FI_PROVIDER=efa ./train",
        "sbatch --export FI_PROVIDER=efa job.slurm",
        "bash -c 'export FI_PROVIDER=efa'",
        'sbatch --wrap="export FI_PROVIDER=efa"',
        "f() { if true; then export FI_PROVIDER=efa; fi; }",
        "x=$(FI_PROVIDER=efa ./train)",
        "sbatch <<EOF\nexport FI_PROVIDER=efa\nEOF",
        "cat >job.slurm <<EOF\n#SBATCH -N 2\nexport FI_PROVIDER=efa\nEOF",
    ):
        assert [rule for _, rule in found(script)] == ["fi-provider"]


def test_findings_have_the_right_lines() -> None:
    script = "#!/bin/bash\n\nexport FI_PROVIDER=efa\nbash -c '\nexport NCCL_TREE_THRESHOLD=0'\n"
    script += "cat >job.slurm <<EOF\n#!/bin/bash\nexport RDMAV_FORK_SAFE=1\nEOF\n"
    assert found(script) == [(3, "fi-provider"), (5, "nccl-thresholds"), (8, "rdmav-fork-safe")]
    script = 'exec /usr/bin/srun \\\n  -K \\\n  python train.py "$@"\n'
    assert texts(script, "command") == ['srun -K python train.py "$@"']
    assert {(each.line, each.end_line) for each in read_subjects(script)} == {(1, 3)}
    script = "#!/bin/bash\n#SBATCH  --nodes=2\n# no\n\ntrue\n#SBATCH --nodes=3\n"
    assert texts(script, "directive") == ["#SBATCH --nodes=2"]
    seen = texts("srun bash -c '$A' \"$B \\$C\" $D", "expansion")[-1]
    assert [name for name in "ABCD" if f"${name}" in seen] == ["B", "D"]


def test_a_comment_allows_its_line_or_the_next() -> None:
    kept = "export FI_PROVIDER=efa  # trainctl: allow fi-provider measured"
    assert found(kept) == []
    assert found(f"{kept}\nexport FI_PROVIDER=efa") == [(2, "fi-provider")]
    assert found("# trainctl: allow fi-provider measured\n\nexport FI_PROVIDER=efa") == [(3, "fi-provider")]
    assert found("# trainctl: allow rdmav-fork-safe measured\nexport FI_PROVIDER=efa") == [(2, "fi-provider")]
    for comment, said in (
        ("fi-provider", "fi-provider needs a reason"),
        ("fi-provder measured", 'not a rule. Did you mean "fi-provider"?'),
        ("", '"" is not a rule.'),
    ):
        wrong, setting = lint(f"# trainctl: allow {comment}\nexport FI_PROVIDER=efa", name="job.slurm")
        assert said in wrong.problem
        assert setting.rule == "fi-provider"


def test_a_finding_has_place_reason_source_and_mend(tmp_path: Path) -> None:
    (finding,) = lint("\nexport RDMAV_FORK_SAFE=1", name="a/job.slurm")
    first, source, mend = finding.text().splitlines()
    assert first.startswith("a/job.slurm:2: rdmav-fork-safe: a setting of rdma-core")
    assert source.startswith("  source: awsome-distributed-training")
    assert mend == "  write:  nothing"
    (tmp_path / "broken.sh").write_text("true\nif true; then\n")
    (tmp_path / "job.slurm").write_text("export FI_PROVIDER=efa\n")
    broken, setting = lint_files([tmp_path / "broken.sh", tmp_path / "job.slurm"])
    assert (broken.rule, broken.line) == ("not-shell", 2)
    assert "bash cannot parse this script: column " in broken.problem
    assert "bash -n " in broken.instead
    assert setting.rule == "fi-provider"


def test_placeholders_of_examples_are_words() -> None:
    for line in (
        "export BUCKET=<YOUR_BUCKET_NAME>",
        "aws s3 ls s3://<bucket>/",
        "cd <path-to your/repository>",
        "srun --container-image <image>",
        "#SBATCH --account=<account>\nexport BUCKET=<bucket>",
    ):
        assert found(f"{line}\nexport FI_PROVIDER=efa") == [(2 + line.count("\n"), "fi-provider")]
    assert texts("BUCKET=<bucket>\n", "variable") == ["BUCKET=<bucket>"]
    assert texts("./train <data >log\n", "command") == ["train"]
    assert [each.rule for each in lint("if <bucket>; then\n", name="job.slurm")] == ["not-shell"]


@pytest.mark.parametrize(("rule", "script"), BAD)
def test_a_rule_finds_bad_examples_unless_allowed(rule: str, script: str) -> None:
    (at,) = [found.line for found in lint(script, name="job.slurm") if found.rule == rule]
    lines = script.splitlines()
    lines.insert(at - 1, f"# trainctl: allow {rule} measured on our image")
    assert rule not in {found.rule for found in lint("\n".join(lines), name="job.slurm")}


@pytest.mark.parametrize(("rule", "script"), GOOD)
def test_good_examples_please_every_rule(rule: str, script: str) -> None:
    assert lint(script, name="job.slurm") == []


def test_our_own_job_scripts_have_no_findings() -> None:
    assert {file.name for file in OURS} >= {"job.slurm", "launch.sh", "train.sh", "prepare.sh"}
    assert [found.text() for found in lint_files(OURS)] == []
